package decide

import (
	"slices"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// A visit is one pass through a role. It is tried until it yields a step: again by the same agent if the
// failure may be temporary, by another agent, or later, after a limit resets.

// Policy is the configured reaction to an agent's failures.
type Policy struct {
	Attempts int           // maximum runs of the agent per visit
	Backoff  time.Duration // wait before the second run, doubled each time
	// On lists the kinds of failures after which the agent runs again.
	On []protocol.FailureKind
	// AwaitReset makes the thread wait for the reset of a provider's limit.
	AwaitReset       bool
	MaxRateLimitWait time.Duration
	Fallback         []string // agents that take over, in order
	FallbackOn       []protocol.FailureKind
}

// Rounds returns how often a provider may refuse an account before the process stops waiting for it.
func (p Policy) Rounds() int {
	if !slices.Contains(p.On, protocol.FailedRateLimit) {
		return 1
	}
	return p.Attempts
}

// Pause returns the wait before a round. It never exceeds [LongestPause].
func (p Policy) Pause(round int) time.Duration { return min(p.Backoff<<min(round-1, 10), LongestPause) }

// FallsBack reports whether another agent takes over after a failure.
func (p Policy) FallsBack(kind protocol.FailureKind) bool {
	return len(p.Fallback) > 0 && slices.Contains(p.FallbackOn, kind)
}

// LongestPause is the maximum time that a process waits before an agent runs again.
const LongestPause = time.Minute

// Failure describes a try of a visit that made no step, or whose agent could not start.
type Failure struct {
	NotStarted bool                 // no agent was started, because of its account or the daily limit
	Kind       protocol.FailureKind // "" if the failure would happen with any agent
	// Own means that the agent or the command is at fault, so that $error applies, rather than a person, a
	// limit, the machine or the engine.
	Own      bool
	Runs     int           // runs of this agent, including those that its program has repeated itself
	Reset    time.Duration // time until the provider's limit resets
	Soon     bool          // Reset is short enough for the process to wait
	Stopped  bool          // a user has asked to stop
	NoBudget bool          // the try has used up a limit of the run
	NoDay    bool          // the daily limit is used up
}

// Then is the reaction to a failure.
type Then struct {
	Kind  ThenKind
	Pause time.Duration // for ThenRunAgain
}

// ThenKind is the kind of a reaction.
type ThenKind uint8

// Kinds of reactions.
const (
	ThenErrored    ThenKind = iota // stop; the visit can be tried again
	ThenExhausted                  // stop; the policy allows no further try
	ThenRunAgain                   // run the agent again after a pause
	ThenFallBack                   // run the policy's next agent
	ThenAwaitReset                 // the thread waits, without a process, for the first account that resets
	ThenAwaitDay                   // the thread waits until midnight
)

// AfterFailure returns the reaction to a failure. p is the agent's policy with the remaining fallbacks.
func AfterFailure(f Failure, p Policy) Then {
	if f.NotStarted {
		f.Kind = protocol.FailedRateLimit
	}
	refused := f.Kind == protocol.FailedRateLimit
	again := !f.NotStarted && f.Runs < p.Attempts && slices.Contains(p.On, f.Kind) && (f.Soon || !refused)
	falls := p.FallsBack(f.Kind)
	barred := f.Stopped || f.NoBudget
	switch {
	case f.NoDay && (f.NotStarted || !barred && (again || falls)):
		return Then{Kind: ThenAwaitDay}
	case again && refused && !barred:
		return Then{Kind: ThenRunAgain, Pause: f.Reset}
	case again && !barred:
		return Then{Kind: ThenRunAgain, Pause: p.Pause(f.Runs)}
	case falls && !barred:
		return Then{Kind: ThenFallBack}
	case f.NotStarted, refused && p.AwaitReset:
		return Then{Kind: ThenAwaitReset}
	case f.Own && !refused && !again && !falls && !f.Stopped:
		return Then{Kind: ThenExhausted}
	}
	return Then{Kind: ThenErrored}
}
