package decide

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// failures returns all combinations of facts about a failure.
func failures() (all []Failure) {
	bools := []bool{false, true}
	for _, kind := range []protocol.FailureKind{"", protocol.FailedRateLimit, protocol.FailedServer, protocol.FailedCrash, protocol.FailedTimeout, protocol.FailedMachine} {
		for runs := 1; runs <= 4; runs++ {
			for _, own := range bools {
				all = append(all, Failure{Kind: kind, Own: own, Runs: runs})
				if kind == protocol.FailedRateLimit {
					all = append(all, Failure{Kind: kind, Own: own, Runs: runs, Reset: 50 * time.Second, Soon: true})
				}
			}
		}
	}
	all = append(all, Failure{NotStarted: true, Reset: time.Hour}, Failure{NotStarted: true, Runs: 2, Reset: time.Hour})
	for _, set := range []func(*Failure){
		func(f *Failure) { f.Stopped = true }, func(f *Failure) { f.NoBudget = true }, func(f *Failure) { f.NoDay = true },
	} {
		for _, f := range slices.Clone(all) {
			set(&f)
			all = append(all, f)
		}
	}
	return all
}

// policies returns the policies that a config can express.
func policies() (all []Policy) {
	sets := [][]protocol.FailureKind{
		{}, {protocol.FailedRateLimit, protocol.FailedServer}, {protocol.FailedServer, protocol.FailedCrash},
		{protocol.FailedRateLimit, protocol.FailedCrash, protocol.FailedTimeout},
	}
	for _, attempts := range []int{1, 3} {
		for _, on := range sets {
			for _, fallbackOn := range sets {
				for _, fallback := range [][]string{nil, {"other"}} {
					p := Policy{Attempts: attempts, Backoff: time.Second, On: on, Fallback: fallback, FallbackOn: fallbackOn, MaxRateLimitWait: 8 * time.Hour}
					all = append(all, p)
					p.AwaitReset = true
					all = append(all, p)
				}
			}
		}
	}
	return all
}

// failureLaws are properties that don't depend on the order of the rows. Each returns true if it is violated.
var failureLaws = map[string]func(Failure, Policy, Then) bool{
	"attempts bound runs": func(f Failure, p Policy, then Then) bool {
		return then.Kind == ThenRunAgain && f.Runs >= p.Attempts
	},
	"it runs again only if On names it": func(f Failure, p Policy, then Then) bool {
		return then.Kind == ThenRunAgain && !slices.Contains(p.On, f.Kind)
	},
	"stop, budget and day bar starts": func(f Failure, _ Policy, then Then) bool {
		return (f.Stopped || f.NoBudget || f.NoDay) && (then.Kind == ThenRunAgain || then.Kind == ThenFallBack)
	},
	"held: no run": func(f Failure, _ Policy, then Then) bool { return f.NotStarted && then.Kind == ThenRunAgain },
	"after the pause it may start": func(f Failure, _ Policy, then Then) bool {
		return then.Kind == ThenRunAgain && f.Kind == protocol.FailedRateLimit && (!f.Soon || then.Pause < f.Reset)
	},
	"a minute at most": func(_ Failure, _ Policy, then Then) bool {
		return then.Pause < 0 || then.Pause > LongestPause || then.Kind != ThenRunAgain && then.Pause != 0
	},
	"fallback only if FallbackOn names it": func(f Failure, p Policy, then Then) bool {
		kind := f.Kind
		if f.NotStarted {
			kind = protocol.FailedRateLimit
		}
		return then.Kind == ThenFallBack && (len(p.Fallback) == 0 || !slices.Contains(p.FallbackOn, kind))
	},
	"held: no failure": func(f Failure, _ Policy, then Then) bool { return f.NotStarted && then.Kind < ThenRunAgain },
	"wait for provider or day": func(f Failure, _ Policy, then Then) bool {
		return then.Kind == ThenAwaitDay && !f.NoDay || then.Kind == ThenAwaitReset && !f.NotStarted && f.Kind != protocol.FailedRateLimit
	},
	"exhausted: nothing left": func(f Failure, p Policy, then Then) bool {
		left := f.Runs < p.Attempts && slices.Contains(p.On, f.Kind) || len(p.Fallback) > 0 && slices.Contains(p.FallbackOn, f.Kind)
		return then.Kind == ThenExhausted && (left || !f.Own || f.Stopped || f.NotStarted || f.Kind == protocol.FailedRateLimit)
	},
	"nothing left: exhausted": func(f Failure, _ Policy, then Then) bool {
		return then.Kind == ThenErrored && f.Own && !f.Stopped && !f.NoBudget && f.Kind != protocol.FailedRateLimit
	},
}

func TestEachFailureKeepsTheLaws(t *testing.T) {
	t.Parallel()
	broken, seen := map[string]string{}, map[ThenKind]int{}
	for _, f := range failures() {
		for _, p := range policies() {
			then := AfterFailure(f, p)
			seen[then.Kind]++
			for law, breaks := range failureLaws {
				if breaks(f, p, then) {
					broken[law] = fmt.Sprintf("%+v\n%+v\n%+v", f, p, then)
				}
			}
		}
	}
	require.Empty(t, broken)
	require.Len(t, seen, int(ThenAwaitDay)+1, "%v", seen)
}

func TestWhatFollowsAFailure(t *testing.T) {
	t.Parallel()
	p := Policy{
		Attempts: 3, Backoff: 5 * time.Second, On: []protocol.FailureKind{protocol.FailedRateLimit, protocol.FailedServer}, MaxRateLimitWait: 24 * time.Hour,
		FallbackOn: []protocol.FailureKind{protocol.FailedServer, protocol.FailedCrash},
	}
	with := func(change func(*Policy)) Policy {
		other := p
		change(&other)
		return other
	}
	falls := with(func(p *Policy) { p.Fallback = []string{"other"} })
	waits := with(func(p *Policy) { p.AwaitReset = true })
	server := Failure{Kind: protocol.FailedServer, Own: true, Runs: 1}
	last := Failure{Kind: protocol.FailedServer, Own: true, Runs: 3}
	refused := Failure{Kind: protocol.FailedRateLimit, Own: true, Runs: 1, Reset: time.Hour}
	for name, c := range map[string]struct {
		f    Failure
		p    Policy
		want Then
	}{
		"server":                     {server, p, Then{Kind: ThenRunAgain, Pause: 5 * time.Second}},
		"server, the second":         {Failure{Kind: protocol.FailedServer, Runs: 2}, p, Then{Kind: ThenRunAgain, Pause: 10 * time.Second}},
		"server, the last":           {last, p, Then{Kind: ThenExhausted}},
		"server, the last, fallback": {last, falls, Then{Kind: ThenFallBack}},
		"crash":                      {Failure{Kind: protocol.FailedCrash, Own: true, Runs: 1}, falls, Then{Kind: ThenFallBack}},
		"an error of the agent":      {Failure{Own: true, Runs: 1}, falls, Then{Kind: ThenExhausted}},
		"a missing login":            {Failure{Kind: protocol.FailedMachine, Runs: 1}, falls, Then{Kind: ThenErrored}},
		"stopped":                    {Failure{Kind: protocol.FailedServer, Own: true, Runs: 1, Stopped: true}, falls, Then{Kind: ThenErrored}},
		"no budget":                  {Failure{Kind: protocol.FailedServer, Own: true, Runs: 1, NoBudget: true}, p, Then{Kind: ThenErrored}},
		"no budget, the last":        {Failure{Kind: protocol.FailedServer, Own: true, Runs: 3, NoBudget: true}, p, Then{Kind: ThenExhausted}},
		"refused":                    {refused, falls, Then{Kind: ThenErrored}},
		"refused, wait":              {refused, waits, Then{Kind: ThenAwaitReset}},
		"refused for seconds":        {Failure{Kind: protocol.FailedRateLimit, Runs: 1, Reset: 10 * time.Second, Soon: true}, waits, Then{Kind: ThenRunAgain, Pause: 10 * time.Second}},
		"not started":                {Failure{NotStarted: true, Reset: time.Hour}, p, Then{Kind: ThenAwaitReset}},
		"the day":                    {Failure{Kind: protocol.FailedServer, Own: true, Runs: 1, NoDay: true}, p, Then{Kind: ThenAwaitDay}},
		"the day, the last":          {Failure{Kind: protocol.FailedServer, Own: true, Runs: 3, NoDay: true}, p, Then{Kind: ThenExhausted}},
	} {
		require.Equal(t, c.want, AfterFailure(c.f, c.p), name)
	}
}
