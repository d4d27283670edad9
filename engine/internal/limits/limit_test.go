package limits

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/protocol"
)

// rounds returns a policy with which a process waits after the n-th refusal.
func rounds(n int) decide.Policy {
	return decide.Policy{Attempts: n, On: []protocol.FailureKind{protocol.FailedRateLimit}, MaxRateLimitWait: time.Hour}
}

var noon = time.Date(2026, 11, 28, 12, 0, 0, 0, time.UTC)

func limit(until, noted time.Duration, refusals int) Limit {
	return Limit{UntilMs: noon.Add(until).UnixMilli(), NotedMs: noon.Add(noted).UnixMilli(), Refusals: refusals}
}

func TestWhatAnAgentMayDo(t *testing.T) {
	t.Parallel()
	three, never := rounds(3), time.Time{}
	for name, c := range map[string]struct {
		limit Limit
		p     decide.Policy
		since time.Time
		want  Start
	}{
		"no limit":                        {Limit{}, three, never, MayStart},
		"reset in an hour":                {limit(time.Hour, -time.Second, 1), three, never, MustNotStart},
		"reset in two seconds":            {limit(2*time.Second, -time.Second, 1), three, never, MustWait},
		"the third refusal":               {limit(2*time.Second, -time.Second, 3), three, never, MustNotStart},
		"no process waits":                {limit(2*time.Second, -time.Second, 1), rounds(1), never, MustNotStart},
		"reset":                           {limit(-time.Second, -time.Hour, 7), three, never, MayScout},
		"a person asks":                   {limit(time.Hour, -time.Minute, 1), three, noon, MayScout},
		"refused since the person asked":  {limit(time.Hour, time.Second, 2), three, noon, MustNotStart},
		"a person asks while it is reset": {limit(2*time.Second, -time.Second, 1), three, noon, MayScout},
	} {
		require.Equal(t, c.want, c.limit.Start(noon, c.p, c.since), name)
	}
}

func TestWhatARefusalMakesOfALimit(t *testing.T) {
	t.Parallel()
	p := rounds(3)
	p.Backoff, p.MaxRateLimitWait = 5*time.Second, 8*time.Hour
	since := func(begun, retryAt time.Duration) Refusal {
		r := Refusal{Started: noon.Add(begun), At: noon}
		if retryAt != 0 {
			r.RetryAt = noon.Add(retryAt)
		}
		return r
	}
	for name, c := range map[string]struct {
		was      Limit
		refusal  Refusal
		until    time.Duration
		refusals int
	}{
		"the first":                            {Limit{}, since(-time.Second, time.Hour), time.Hour, 1},
		"the second in flight, without a time": {limit(time.Hour, -time.Second, 1), since(-2*time.Second, 0), time.Hour, 1},
		"the second in flight, later":          {limit(time.Hour, -time.Second, 1), since(-2*time.Second, 2*time.Hour), 2 * time.Hour, 1},
		"of a scout":                           {limit(-time.Second, -time.Hour, 1), since(-time.Second, 2*time.Second), 10 * time.Second, 2},
		"no time":                              {Limit{}, since(-time.Second, 0), 5 * time.Second, 1},
		"no time, the third":                   {limit(-time.Second, -time.Minute, 2), since(-time.Second, 0), FirstPark, 3},
		"no time, the fourth":                  {limit(-time.Second, -time.Minute, 3), since(-time.Second, 0), 2 * FirstPark, 4},
		"a time long ago, the third":           {limit(-time.Second, -time.Minute, 2), since(-time.Second, -time.Hour), FirstPark, 3},
		"a time that has just passed":          {limit(-time.Second, -time.Minute, 2), since(-time.Second, -time.Second), 20 * time.Second, 3},
		"in a century":                         {Limit{}, since(-time.Second, 100*365*24*time.Hour), 8 * time.Hour, 1},
		"the thousandth":                       {limit(-time.Second, -time.Minute, 999), since(-time.Second, 0), 8 * time.Hour, 1000},
	} {
		got := c.was.After(c.refusal, p)
		require.Equal(t, noon.Add(c.until), got.Until().UTC(), name)
		require.Equal(t, c.refusals, got.Refusals, name)
	}
	// The limit is assumed to last at most this long, whatever the configured wait: otherwise an agent would
	// start again and again.
	p.MaxRateLimitWait = 400 * 24 * time.Hour
	got := Limit{}.After(since(-time.Second, 60*24*time.Hour), p)
	require.Equal(t, noon.Add(longest), got.Until().UTC())
	require.True(t, got.plausible(noon))
}
