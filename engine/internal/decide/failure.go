package decide

import (
	"slices"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// A visit is a turn of a role. It is tried until it yields a step: again by its agent if the
// failure may be temporary, by another agent, or later, once a limit is reset.

// Failure is how a try of a visit ended without a step, or that its agent could not start.
type Failure struct {
	Held bool                 // no agent started: Limit says until when
	Kind protocol.FailureKind // "": whoever plays, it would come again
	// Own: the agent or the command has failed, so that $error applies. Not its own are what a
	// person, a limit, the machine or the engine is to blame for.
	Own      bool
	Runs     int   // of this agent, with those that its program has made itself
	Limit    Limit // of the agent's account, if its provider has refused it
	Before   Limit // of the agents before it, the one that is reset first
	Day      Limit // what may be spent in a day is used up; zero: it is not
	Stopped  bool  // a person has asked to stop
	NoBudget bool  // what has failed has used up a limit of the run
}

// Then is what follows a failure.
type Then struct {
	Kind  ThenKind
	Pause time.Duration // of ThenRunAgain
	Until Limit         // of ThenWait
}

// ThenKind is the kind of what follows.
type ThenKind uint8

// What follows a failure.
const (
	ThenErrored   ThenKind = iota // the visit can be tried again
	ThenExhausted                 // so it can, but nothing is left that the policy would try
	ThenRunAgain                  // run the agent again, after a pause
	ThenFallBack                  // run the next agent of the policy
	ThenWait                      // the thread is rate-limited, and no process waits
)

// AfterFailure returns what follows a failure. p is the agent's policy, with the fallbacks that
// are left.
func AfterFailure(f Failure, p Policy, now time.Time) Then {
	if f.Held {
		f.Kind = protocol.FailedRateLimit
	}
	refused := f.Kind == protocol.FailedRateLimit
	again := !f.Held && f.Runs < p.Attempts && slices.Contains(p.On, f.Kind) &&
		!(refused && f.Limit.Start(now, p, time.Time{}) == MustNotStart)
	falls := p.FallsBack(f.Kind)
	barred := f.Stopped || f.NoBudget
	switch {
	case f.Day.Active(now) && !barred && (again || falls || f.Held):
		return Then{Kind: ThenWait, Until: f.Day}
	case again && refused && !barred:
		return Then{Kind: ThenRunAgain, Pause: max(0, f.Limit.Until().Sub(now))}
	case again && !barred:
		return Then{Kind: ThenRunAgain, Pause: p.pause(f.Runs)}
	case falls && !barred:
		return Then{Kind: ThenFallBack}
	case f.Held, refused && p.AwaitReset:
		return Then{Kind: ThenWait, Until: f.Before.Sooner(f.Limit)}
	case f.Own && !refused && !again && !falls && !f.Stopped:
		return Then{Kind: ThenExhausted}
	}
	return Then{Kind: ThenErrored}
}
