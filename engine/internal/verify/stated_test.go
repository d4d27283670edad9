package verify

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
)

// If secrets are hidden in the prompt recorded by a step, the rest must match.
func TestHides(t *testing.T) {
	t.Parallel()
	const whole = "use key-1 here and key-2 there"
	for text, want := range map[string]bool{
		"use [hidden key] here and [hidden key] there":    true,
		"use [hidden key] there":                          true,
		"[hidden key] and [hidden key] there":             true,
		whole:                                             false, // equal, with nothing hidden
		"use [hidden key] here":                           false,
		"use [hidden key] and rm -rf [hidden key]":        false,
		"use key-1 here and key-2 there[hidden key]there": false,
		"": false,
	} {
		require.Equal(t, want, hides(text, whole), text)
	}
}

// Times are allowed if a clock that was set during the run explains them.
func TestTimesOfAStep(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH3)
	b := cas.NewBatch(s, time.Now)
	start, err := b.Add(t.Context(), protocol.Text("the start"))
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))
	now := time.Now()
	hour := time.Hour.Milliseconds()
	for name, test := range map[string]struct{ begun, started, completed int64 }{ // ms relative to now
		"fine":                            {-1000, -900, -10},
		"not known":                       {-1000, -now.UnixMilli(), -now.UnixMilli()},
		"a little off":                    {-1000, -2000, 1000},
		"the clock was set back":          {hour, hour + 5, -10},
		"the clock was set back at once":  {hour, -20, -10},
		"! more than the clock was":       {hour, 2 * hour, 2 * hour},
		"! before the thread":             {-1000, -hour, 0},
		"! in the future":                 {-1000, 0, hour},
		"! ends before it begins":         {-1000, 0, -10 * hour},
		"the clock was set forward":       {-9 * hour, -9*hour + 1, 0},
		"! before the run and the thread": {-9 * hour, -10 * hour, 0},
	} {
		a := Asked{Nodes: s, Now: now.UnixMilli(), StartedAt: now.UnixMilli() + test.begun}
		reason := a.checkTimes(t.Context(), protocol.Step{Start: start, StartedAtMs: now.UnixMilli() + test.started, CompletedAtMs: now.UnixMilli() + test.completed})
		require.Equal(t, name[0] == '!', reason != "", "%s: %s", name, reason)
	}
}
