// Package mock is an agent that plays a script: for tests of the engine, for
// tests of workflows, and for demonstrations. It can do everything that agents
// do, and everything that they should not: hang, crash at any point, talk
// nonsense, leave children behind.
//
// The script is a YAML file (README.md of cmd/uwf-mock tells the format):
// play.go plays it, faults.go misbehaves.
package mock

import (
	"fmt"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Scenario is a script: the i-th step of a thread is played by Steps[i], or where there
// is a script for the role, the n-th of its steps by the n-th entry, the last one again
// and again.
type Scenario struct {
	Steps  []Step
	Roles  map[string][]Step
	Repeat bool // start over when the steps are used up
}

// Step is what the agent does in one step of the thread.
type Step struct {
	Role string // the role that it is meant for; "": any
	Reply
	// Corrections are the replies to Continue, in order; the last one is
	// repeated. None: the reply itself, as in the original.
	Corrections []Reply
	Session     string // "": mock-<i>
	Files       []File // written into the working directory before the reply
	Faults
}

// Reply is an answer. One of Output, Value, Suspend and Fail is set.
type Reply struct {
	Output  *string
	Value   any
	Suspend string
	Fail    string // the run returns this error
	Turns   []Turn // recorded as they happen
	Delay   time.Duration
	Usage   *protocol.Usage
}

// Turn is something that happens before the answer: words, or a tool call with
// its result.
type Turn struct {
	Say    string
	Tool   string
	Args   any
	Result string
	Delay  time.Duration
}

// File is a file to write.
type File struct{ Path, Content string }

// Faults are what a well-behaved agent would not do.
type Faults struct {
	Stdout      string // printed as it is, before the work
	Stderr      string
	StdoutBytes int64 // so much more noise on stdout, in lines
	Crash       Crash
	Hang        bool    // wait to be stopped, after Files and before the reply
	Deaf        bool    // ignore the signals that ask to stop
	ResultLine  *string // printed instead of the result line
	Exit        *int    // the exit status, whatever happened
	Grandchild  Grandchild
}

// Crash is the point at which the agent kills itself.
type Crash string

// The points, in the order in which they are passed.
const (
	CrashAtStart      Crash = "start"         // nothing has been done
	CrashBeforeCommit Crash = "before-commit" // turns and files are written, the step is not
	CrashAfterCommit  Crash = "after-commit"  // the step is durable, nobody has been told
	CrashAfterResult  Crash = "after-result"  // the result line is out, the process has not ended well
)

// Grandchild is a process that the agent starts and does not wait for.
type Grandchild struct {
	For     time.Duration // how long it lives; 0: none is started
	PidFile string        // gets its process id; "": none
}

// step finds the script of the i-th step, from 0, which is to be the role's next after
// so many visits.
func (s Scenario) step(i, visits int, role string) (Step, error) {
	if own := s.Roles[role]; len(own) > 0 {
		step := own[min(visits, len(own)-1)]
		if step.Usage == nil { // a whole workflow that is played has cost nothing, and that is known
			step.Usage = &protocol.Usage{CostUSD: new(float64)}
		}
		return step, nil
	}
	if s.Repeat && len(s.Steps) > 0 {
		i %= len(s.Steps)
	}
	if len(s.Steps) == 0 && len(s.Roles) > 0 {
		return Step{}, fmt.Errorf("the scenario has no entry for role %q", role)
	}
	if i >= len(s.Steps) {
		return Step{}, fmt.Errorf("mock scenario has no step at index %d (total %d); moderator routed to role %q", i, len(s.Steps), role)
	}
	step := s.Steps[i]
	if step.Role != "" && step.Role != role {
		return Step{}, fmt.Errorf("mock step %d expected role %q but moderator routed to %q", i, step.Role, role)
	}
	return step, nil
}
