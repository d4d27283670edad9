package limits

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/engine/internal/decide"
)

// Durations.
const (
	FirstPark = 15 * time.Minute    // used if the provider reports no reset time; doubled each time
	longest   = 32 * 24 * time.Hour // exceeds all reset times that providers report
	// skew is the maximum clock difference of machines that share a home. A limit from further in the future
	// was recorded before the clock was set back.
	skew = time.Minute
)

// Limit describes an account that its provider has refused, or why no agent of a home may start. The zero
// value means no limit.
type Limit struct {
	UntilMs int64 `json:"untilMs"`
	NotedMs int64 `json:"notedMs"`
	// Refusals counts consecutive refusals. Refusals of agents that ran concurrently count as one.
	Refusals int    `json:"refusals"`
	Reason   string `json:"reason"` // the provider's message
}

// plausible reports whether a limit can have been recorded before now.
func (l Limit) plausible(now time.Time) bool {
	return l.NotedMs > 0 && l.NotedMs <= now.Add(skew).UnixMilli() && l.Refusals > 0 && l.Refusals < 1<<30 &&
		l.UntilMs > 0 && l.UntilMs-l.NotedMs <= longest.Milliseconds()
}

// Until returns when the limit resets.
func (l Limit) Until() time.Time { return time.UnixMilli(l.UntilMs) }

// Active reports whether the limit has not reset yet.
func (l Limit) Active(now time.Time) bool { return l.Until().After(now) }

// Sooner returns the limit that resets first.
func (l Limit) Sooner(other Limit) Limit {
	if l.UntilMs == 0 || other.UntilMs > 0 && other.UntilMs < l.UntilMs {
		return other
	}
	return l
}

// Start is the permission of an agent to start.
type Start uint8

// Permissions to start.
const (
	MayStart     Start = iota
	MayScout           // one agent may start as the scout
	MustWait           // the limit resets soon, so the process waits
	MustNotStart       // not before the limit resets
)

// Start returns the permission of an agent at time now. It ignores limits recorded until since, when a user
// asked to continue; zero means never.
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

// Refusal is a provider's refusal of an agent.
type Refusal struct {
	Started, At time.Time // start of the agent, and time of the refusal
	RetryAt     time.Time // reset time from the provider; zero if unknown
	Reason      string
}

// After returns the limit after a refusal. If several agents were refused at the same time, the latest reset
// counts.
func (l Limit) After(r Refusal, p decide.Policy) Limit {
	next := Limit{NotedMs: r.At.UnixMilli(), Refusals: l.Refusals + 1, Reason: fmt.Sprintf("%.500s", r.Reason)}
	together := l.NotedMs >= r.Started.UnixMilli()
	if together {
		next.Refusals = l.Refusals
	}
	wait := p.Pause(next.Refusals)
	switch left := r.RetryAt.Sub(r.At); {
	case left > 0:
		wait = max(wait, left)
	case next.Refusals >= p.Rounds(): // the reset time is missing or implausible
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
