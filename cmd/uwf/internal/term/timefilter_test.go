package term

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestParseTime compares --after and --before with the original.
func TestParseTime(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/time-filter.json")
	require.NoError(t, err)
	var cases []struct {
		Input string `json:"input"`
		NowMs int64  `json:"nowMs"`
		Ms    int64  `json:"ms"`
		Error string `json:"error"`
	}
	require.NoError(t, json.Unmarshal(data, &cases))
	for _, c := range cases {
		got, err := ParseTime(c.Input, time.UnixMilli(c.NowMs), time.UTC)
		if c.Error != "" {
			require.Error(t, err, c.Input)
			continue
		}
		require.NoError(t, err, c.Input)
		require.Equal(t, c.Ms, got.UnixMilli(), c.Input)
	}
}

func TestParseTimeLocal(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("east", 2*3600)
	now := time.Date(2026, 6, 4, 12, 0, 0, 0, zone)
	got, err := ParseTime("2026-06-01T10:00", now, zone)
	require.NoError(t, err)
	require.Equal(t, "2026-06-01T08:00:00Z", got.UTC().Format(time.RFC3339))
	_, err = ParseTime("999999999d", now, zone)
	require.Error(t, err, "a time span that overflows")
}
