package cliagent

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestWhenALimitIsReset(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 22, 23, 30, 0, 0, time.UTC)
	for message, want := range map[string]time.Time{
		"Claude AI usage limit reached|1795392000":                    time.Unix(1795392000, 0),
		"You've hit your limit · resets 3am (UTC)":                    time.Date(2026, 11, 23, 3, 0, 0, 0, time.UTC),
		"limit reached, resets at 11:45pm":                            time.Date(2026, 11, 22, 23, 45, 0, 0, time.UTC),
		"You've hit your usage limit. Try again in 2 hours 5 minutes": now.Add(125 * time.Minute),
		"Please try again in 20s":                                     now.Add(20 * time.Second),
		"You've hit your usage limit. Try again in 3 days 1 hour.":    now.Add(73 * time.Hour),
		"429 Too Many Requests":                                       {},
		"resets 77pm":                                                 {},
		"try again in 99999999999999 hours":                           {},
	} {
		require.True(t, want.Equal(resetIn(message, now)), "%s: %s", message, resetIn(message, now))
	}
}
