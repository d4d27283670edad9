package decide

import (
	"slices"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// A visit is a turn of a role. It is tried until it yields a step: again by its agent if the
// failure may be temporary, by another agent, or later, once a limit is reset.

// Policy is what the config says about an agent that fails.
type Policy struct {
	Attempts int           // runs of the agent in a visit
	Backoff  time.Duration // before the second run, doubled each time
	// On are the kinds of failures after which the agent runs again.
	On []protocol.FailureKind
	// AwaitReset: the thread waits for a provider that has refused the agent.
	AwaitReset       bool
	MaxRateLimitWait time.Duration
	Fallback         []string // agents that take over, in their order
	FallbackOn       []protocol.FailureKind
}

// Rounds is how often a provider may refuse an account before no process waits for it.
func (p Policy) Rounds() int {
	if !slices.Contains(p.On, protocol.FailedRateLimit) {
		return 1
	}
	return p.Attempts
}

// Pause is how long an agent waits before a round: never so long that no process waits.
func (p Policy) Pause(round int) time.Duration { return min(p.Backoff<<min(round-1, 10), LongestPause) }

// FallsBack reports whether another agent takes over after a failure.
func (p Policy) FallsBack(kind protocol.FailureKind) bool {
	return len(p.Fallback) > 0 && slices.Contains(p.FallbackOn, kind)
}

// LongestPause is how long a process waits before an agent runs again.
const LongestPause = time.Minute

// Failure is how a try of a visit ended without a step, or that its agent could not start.
type Failure struct {
	Held bool                 // no agent started, because of its account or the day's limit
	Kind protocol.FailureKind // "": whoever plays, it would come again
	// Own: the agent or the command has failed, so that $error applies. Not its own are what a
	// person, a limit, the machine or the engine is to blame for.
	Own      bool
	Runs     int           // of this agent, with those that its program has made itself
	Reset    time.Duration // until the provider that has refused the agent grants more
	Soon     bool          // a process waits that long
	Stopped  bool          // a person has asked to stop
	NoBudget bool          // what has failed has used up a limit of the run
	NoDay    bool          // what may be spent in a day is used up
}

// Then is what follows a failure.
type Then struct {
	Kind  ThenKind
	Pause time.Duration // of ThenRunAgain
}

// ThenKind is the kind of what follows.
type ThenKind uint8

// What follows a failure.
const (
	ThenErrored    ThenKind = iota // the visit can be tried again
	ThenExhausted                  // so it can, but nothing is left that the policy would try
	ThenRunAgain                   // run the agent again, after a pause
	ThenFallBack                   // run the next agent of the policy
	ThenAwaitReset                 // the thread waits for the first account that is reset; no process does
	ThenAwaitDay                   // it waits until midnight
)

// AfterFailure returns what follows a failure. p is the agent's policy, with the fallbacks that
// are left.
func AfterFailure(f Failure, p Policy) Then {
	if f.Held {
		f.Kind = protocol.FailedRateLimit
	}
	refused := f.Kind == protocol.FailedRateLimit
	again := !f.Held && f.Runs < p.Attempts && slices.Contains(p.On, f.Kind) && (f.Soon || !refused)
	falls := p.FallsBack(f.Kind)
	barred := f.Stopped || f.NoBudget
	switch {
	case f.NoDay && (f.Held || !barred && (again || falls)):
		return Then{Kind: ThenAwaitDay}
	case again && refused && !barred:
		return Then{Kind: ThenRunAgain, Pause: f.Reset}
	case again && !barred:
		return Then{Kind: ThenRunAgain, Pause: p.Pause(f.Runs)}
	case falls && !barred:
		return Then{Kind: ThenFallBack}
	case f.Held, refused && p.AwaitReset:
		return Then{Kind: ThenAwaitReset}
	case f.Own && !refused && !again && !falls && !f.Stopped:
		return Then{Kind: ThenExhausted}
	}
	return Then{Kind: ThenErrored}
}
