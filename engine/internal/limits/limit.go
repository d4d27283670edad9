package limits

import (
	"time"

	"github.com/united-workforce/uwf/engine/internal/decide"
)

const (
	FirstPark = 15 * time.Minute    // where the provider names no time; doubled each time
	longest   = 32 * 24 * time.Hour // beyond every reset that providers name
	// skew is how far the clocks of machines that share a home may differ. A limit from further
	// ahead was noted before the clock was set back.
	skew = time.Minute
)

// Limit is what is known of an account that its provider has refused, or why no agent of a home
// starts. The zero value is no limit.
type Limit struct {
	UntilMs int64 `json:"untilMs"`
	NotedMs int64 `json:"notedMs"`
	// Refusals counts those in a row; agents that ran at the same time count as one.
	Refusals int    `json:"refusals"`
	Reason   string `json:"reason"` // in the provider's words
}

// plausible reports whether a limit can have been noted by now.
func (l Limit) plausible(now time.Time) bool {
	return l.NotedMs > 0 && l.NotedMs <= now.Add(skew).UnixMilli() && l.Refusals > 0 && l.Refusals < 1<<30 &&
		l.UntilMs > 0 && l.UntilMs-l.NotedMs <= longest.Milliseconds()
}

// Until is when the limit is reset.
func (l Limit) Until() time.Time { return time.UnixMilli(l.UntilMs) }

// Active reports whether the limit is not reset yet.
func (l Limit) Active(now time.Time) bool { return l.Until().After(now) }

// Sooner returns the one of two limits that is reset first.
func (l Limit) Sooner(other Limit) Limit {
	if l.UntilMs == 0 || other.UntilMs > 0 && other.UntilMs < l.UntilMs {
		return other
	}
	return l
}

// Start is what an agent may do that is about to start.
type Start uint8

// What an agent may do.
const (
	MayStart     Start = iota
	MayScout           // it may start if it is the only one
	MustWait           // the limit is reset so soon that its process waits
	MustNotStart       // before the limit is reset
)

// Start returns what an agent may do now. Limits noted until since do not count: then a person
// asked to continue. The zero time: nobody did.
func (l Limit) Start(now time.Time, p decide.Policy, since time.Time) Start {
	switch {
	case l.UntilMs == 0:
		return MayStart
	case !l.Active(now), !since.IsZero() && l.NotedMs <= since.UnixMilli():
		return MayScout
	case l.Refusals < p.Rounds() && l.Until().Sub(now) <= decide.LongestPause:
		return MustWait
	}
	return MustNotStart
}

// Refusal is a provider's answer to an agent.
type Refusal struct {
	Begun, At time.Time // of the agent
	RetryAt   time.Time // when the provider grants more; zero: it names no time
	Reason    string
}

// After returns the limit after a refusal. Of agents that were refused together, the latest
// reset counts.
func (l Limit) After(r Refusal, p decide.Policy) Limit {
	next := Limit{NotedMs: r.At.UnixMilli(), Refusals: l.Refusals + 1, Reason: r.Reason}
	together := l.NotedMs >= r.Begun.UnixMilli()
	if together {
		next.Refusals = l.Refusals
	}
	wait := p.Pause(next.Refusals)
	switch left := r.RetryAt.Sub(r.At); {
	case left > 0:
		wait = max(wait, left)
	case next.Refusals >= p.Rounds(): // it names none, or one that makes no sense
		first := FirstPark
		if left > -time.Minute { // it has just passed
			first = time.Second
		}
		wait = max(wait, first<<min(next.Refusals-p.Rounds(), 8))
	}
	next.UntilMs = r.At.Add(min(wait, p.MaxRateLimitWait, longest)).UnixMilli()
	if together && l.UntilMs > next.UntilMs {
		next.UntilMs, next.Reason = l.UntilMs, l.Reason
	}
	return next
}
