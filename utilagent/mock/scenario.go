// Package mock is an agent that plays a script, for tests of the engine and of workflows, and for
// demonstrations. It can do everything that agents do, and everything that they should not: hang, crash at
// any point, print garbage, leave children behind.
//
// The script is a YAML file in the format described in cmd/uwf-mock/README.md. play.go plays it and
// misbehaves.
package mock

import (
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamlstruct"
)

// Scenario is a script. Steps[i] plays the i-th step of a thread. If there is a script for the role, its n-th
// entry plays the role's n-th step, and the last entry repeats.
type Scenario struct {
	Steps  []Step            `json:"steps"`
	Roles  map[string][]Step `json:"roles"`
	Repeat bool              `json:"repeat"` // start over after the last step
}

// Step describes one step of the thread.
type Step struct {
	Role string `json:"role"` // expected role; "" accepts any
	Reply
	// Corrections are the replies to Continue, in order; the last one repeats. Without any, the reply itself
	// is used, as in the original.
	Corrections []Reply           `json:"corrections"`
	Session     string            `json:"session"` // default mock-<i>
	Files       map[string]string `json:"files"`   // by path; written to the working directory before the reply
	Faults
}

// Reply is an answer. Exactly one of Output, Value, Suspend and Fail is set.
type Reply struct {
	Output  *string         `json:"output"`
	Value   any             `json:"value"`
	Suspend string          `json:"suspend"`
	Fail    string          `json:"fail"`  // the run returns this error
	Turns   []Turn          `json:"turns"` // recorded one by one
	Delay   time.Duration   `json:"delay"`
	Usage   *protocol.Usage `json:"usage"`
}

// Turn is a turn before the answer: text, or a tool call with its result.
type Turn struct {
	Text   string        `json:"say"`
	Tool   string        `json:"tool"`
	Args   any           `json:"args"`
	Result string        `json:"result"`
	Delay  time.Duration `json:"delay"`
}

// Faults are misbehaviors.
type Faults struct {
	Stdout      string     `json:"stdout"` // printed verbatim before the work
	Stderr      string     `json:"stderr"`
	StdoutBytes int64      `json:"stdoutBytes"` // bytes of additional noise on stdout, in lines
	Crash       Crash      `json:"crash" is:"start|before-commit|after-commit|after-result"`
	Hang        bool       `json:"hang"`       // wait to be stopped, after Files and before the reply
	Deaf        bool       `json:"deaf"`       // ignore the signals that ask to stop
	ResultLine  *string    `json:"resultLine"` // printed instead of the result line
	Exit        *int       `json:"exit"`       // overrides the exit status
	Grandchild  Grandchild `json:"grandchild"`
}

// Crash is the point at which the agent kills itself.
type Crash string

// Crash points, in order.
const (
	CrashAtStart      Crash = "start"         // nothing has been done
	CrashBeforeCommit Crash = "before-commit" // turns and files are written, the step is not
	CrashAfterCommit  Crash = "after-commit"  // the step is durable but not reported
	CrashAfterResult  Crash = "after-result"  // the result line is printed, but the process crashes
)

// Grandchild is a process that the agent starts and does not wait for.
type Grandchild struct {
	For     time.Duration `json:"for"`     // lifetime; 0 starts none
	PidFile string        `json:"pidFile"` // file for its process ID, or ""
}

// step returns the script for the i-th step, from 0, of a role with the given number of earlier visits.
func (s Scenario) step(i, visits int, role string) (Step, error) {
	if own := s.Roles[role]; len(own) > 0 {
		step := own[min(visits, len(own)-1)]
		if step.Usage == nil { // a played workflow is known to cost nothing
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

// Parse parses a scenario. The error contains the file and every mistake with its position. The original's
// files ({steps: [{role, output}]}) are valid scenarios.
func Parse(file string, src []byte) (Scenario, error) {
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{Bytes: 16 << 20})
	if err == nil {
		if bad := doc.Root.Rounded(); bad != nil {
			err = bad
		}
	}
	if err != nil {
		return Scenario{}, &FileError{File: file, Err: err}
	}
	var s Scenario
	r := &reader{file: file}
	if doc.Root.Get("steps") == nil && doc.Root.Get("roles") == nil {
		r.fail(doc.Root.Pos, "", "mock data must be a mapping with a 'steps' list, or with 'roles'")
		return s, r.err()
	}
	d := yamlstruct.Decoder{Of: "the scenario", Report: r.fail, Before: written, After: r.check}
	d.Decode(doc.Root, &s)
	return s, r.err()
}

// FileError reports a problem with a scenario file as a whole.
type FileError struct {
	File string
	Err  error
}

func (e *FileError) Error() string { return "mock scenario " + e.File + ": " + e.Err.Error() }

func (e *FileError) Unwrap() error { return e.Err }

// reader collects errors, so that all of them are reported at once.
type reader struct {
	file     string
	problems []error
}

func (r *reader) fail(at yamldoc.Pos, remedy, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if remedy != "" {
		text += "; " + remedy
	}
	r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s", r.file, at.Line, at.Column, text))
}

func (r *reader) err() error { return errors.Join(r.problems...) }

// written expands short forms: a correction may be just its output, and a grandchild just its lifetime.
func written(n *yamldoc.Node, into reflect.Type) *yamldoc.Node {
	long := map[reflect.Type]string{reflect.TypeFor[Reply](): "output", reflect.TypeFor[Grandchild](): "for"}[into]
	if n.Kind != yamldoc.Scalar || long == "" {
		return n
	}
	return &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos, Entries: []yamldoc.Entry{{Key: long, Text: long, Pos: n.Pos, Value: n}}}
}

// check reports mistakes that types cannot express.
func (r *reader) check(n *yamldoc.Node, into any, _ string) {
	switch v := into.(type) {
	case *Step:
		// A step that crashes or hangs forever needs no answer.
		r.oneAnswer(n, v.Crash == CrashAtStart || v.Hang)
	case *Reply:
		r.oneAnswer(n, false)
	case *Turn:
		if n.Kind == yamldoc.Mapping && v.Text == "" && v.Tool == "" {
			r.fail(n.Pos, "", "a turn needs say, or tool with args and result")
		}
	}
}

// oneAnswer reports a reply without an answer or with more than one.
func (r *reader) oneAnswer(n *yamldoc.Node, mayBeNone bool) {
	if n.Kind != yamldoc.Mapping {
		return // reported already, or a short form
	}
	answers := 0
	for _, key := range []string{"output", "value", "suspend", "fail"} {
		if v := n.Get(key); v != nil {
			answers++
			if v.Kind == yamldoc.Scalar && v.Scalar == nil {
				r.fail(v.Pos, "", "%s must not be null", key)
			}
		}
	}
	if answers > 1 || answers == 0 && !mayBeNone {
		r.fail(n.Pos, "", "need exactly one: output, value, suspend or fail")
	}
}
