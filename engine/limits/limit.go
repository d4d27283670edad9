// Package limits keeps the rate limits of accounts. A provider that refuses one agent refuses
// every agent of the same account, so <home>/limits/<account>.json records until when. Every
// process of the home reads it before it starts an agent:
//
//   - limit.go: what a refusal makes of a limit, and what an agent may do under it;
//   - accounts.go: the files, and the pass under which an agent runs.
//
// When a limit is reset, one agent, the scout, asks first; the others wait for its answer. All
// locks are files that end with their holder, and a limit ends with its time, so a killed
// process leaves nothing that blocks another.
package limits

import (
	"time"

	"github.com/united-workforce/uwf/engine/retry"
)

// Limit is what is known of an account that its provider has refused. The zero value is an
// account without a limit.
type Limit struct {
	UntilMs int64 `json:"untilMs"`
	NotedMs int64 `json:"notedMs"`
	// Refusals counts those in a row; agents that ran at the same time count as one.
	Refusals int    `json:"refusals"`
	Reason   string `json:"reason"` // in the provider's words
}

const (
	longest = 32 * 24 * time.Hour // beyond every reset that providers name
	// skew is how far the clocks of machines that share a home may differ. A limit from further
	// ahead was noted before the clock was set back.
	skew = time.Minute
)

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

// Verdict is what an agent may do that is about to start.
type Verdict int

// The verdicts.
const (
	Free  Verdict = iota
	Scout         // it may start if it is the only one
	Wait          // the limit is reset so soon that its process waits
	Held          // it must not start
)

// Terms are the settings under which an agent asks for an account.
type Terms struct {
	Rounds           int           // refusals in a row after which no process waits for a reset
	Backoff          time.Duration // before the second round, doubled each time
	MaxRateLimitWait time.Duration
	Places           int // how many agents of the account's name may run at once; 0: any number
	// Since is when a person asked to continue now: limits noted until then do not count. The zero
	// time: nobody did.
	Since time.Time
	// Waits is called again and again while the agent has to wait, with how long it has. It
	// returns why the wait ends, or nil. It can be nil.
	Waits func(waited time.Duration) error
}

// Decide returns what an agent may do now.
func (l Limit) Decide(now time.Time, t Terms) Verdict {
	switch {
	case l.UntilMs == 0:
		return Free
	case !l.Active(now), !t.Since.IsZero() && l.NotedMs <= t.Since.UnixMilli():
		return Scout
	case l.Refusals < t.Rounds && l.Until().Sub(now) <= retry.LongestBackoff:
		return Wait
	}
	return Held
}

// Refusal is a provider's answer to an agent.
type Refusal struct {
	Begun, At time.Time // of the agent
	RetryAt   time.Time // when the provider grants more; zero: it names no time
	Reason    string
}

// After returns the limit after a refusal. Of agents that were refused together, the latest
// reset counts.
func (l Limit) After(r Refusal, t Terms) Limit {
	next := Limit{NotedMs: r.At.UnixMilli(), Refusals: l.Refusals + 1, Reason: r.Reason}
	together := l.NotedMs >= r.Begun.UnixMilli()
	if together {
		next.Refusals = l.Refusals
	}
	wait := retry.Backoff(t.Backoff, next.Refusals)
	switch left := r.RetryAt.Sub(r.At); {
	case left > 0:
		wait = max(wait, left)
	case next.Refusals >= t.Rounds: // it names none, or one that makes no sense
		first := retry.FirstPark
		if left > -time.Minute { // it has just passed
			first = time.Second
		}
		wait = max(wait, first<<min(next.Refusals-t.Rounds, 8))
	}
	next.UntilMs = r.At.Add(min(wait, t.MaxRateLimitWait, longest)).UnixMilli()
	if together && l.UntilMs > next.UntilMs {
		next.UntilMs, next.Reason = l.UntilMs, l.Reason
	}
	return next
}
