// Package mock is an agent that plays a script: for tests of the engine, for
// tests of workflows, and for demonstrations. It can do everything that agents
// do, and everything that they should not: hang, crash at any point, talk
// nonsense, leave children behind.
//
// The script is a YAML file (README.md of cmd/uwf-mock tells the format):
// play.go plays it, and misbehaves.
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

// Scenario is a script: the i-th step of a thread is played by Steps[i], or where there
// is a script for the role, the n-th of its steps by the n-th entry, the last one again
// and again.
type Scenario struct {
	Steps  []Step            `json:"steps"`
	Roles  map[string][]Step `json:"roles"`
	Repeat bool              `json:"repeat"` // start over when the steps are used up
}

// Step is what the agent does in one step of the thread.
type Step struct {
	Role string `json:"role"` // the role that it is meant for; "": any
	Reply
	// Corrections are the replies to Continue, in order; the last one is
	// repeated. None: the reply itself, as in the original.
	Corrections []Reply           `json:"corrections"`
	Session     string            `json:"session"` // "": mock-<i>
	Files       map[string]string `json:"files"`   // by path; written into the working directory before the reply
	Faults
}

// Reply is an answer. One of Output, Value, Suspend and Fail is set.
type Reply struct {
	Output  *string         `json:"output"`
	Value   any             `json:"value"`
	Suspend string          `json:"suspend"`
	Fail    string          `json:"fail"`  // the run returns this error
	Turns   []Turn          `json:"turns"` // recorded as they happen
	Delay   time.Duration   `json:"delay"`
	Usage   *protocol.Usage `json:"usage"`
}

// Turn is something that happens before the answer: words, or a tool call with
// its result.
type Turn struct {
	Say    string        `json:"say"`
	Tool   string        `json:"tool"`
	Args   any           `json:"args"`
	Result string        `json:"result"`
	Delay  time.Duration `json:"delay"`
}

// Faults are what a well-behaved agent would not do.
type Faults struct {
	Stdout      string     `json:"stdout"` // printed as it is, before the work
	Stderr      string     `json:"stderr"`
	StdoutBytes int64      `json:"stdoutBytes"` // so much more noise on stdout, in lines
	Crash       Crash      `json:"crash" is:"start|before-commit|after-commit|after-result"`
	Hang        bool       `json:"hang"`       // wait to be stopped, after Files and before the reply
	Deaf        bool       `json:"deaf"`       // ignore the signals that ask to stop
	ResultLine  *string    `json:"resultLine"` // printed instead of the result line
	Exit        *int       `json:"exit"`       // the exit status, whatever happened
	Grandchild  Grandchild `json:"grandchild"`
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
	For     time.Duration `json:"for"`     // how long it lives; 0: none is started
	PidFile string        `json:"pidFile"` // gets its process id; "": none
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

// Parse reads a scenario. The error names the file, and every mistake with its
// place. The original's files ({steps: [{role, output}]}) are scenarios.
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

// FileError is a problem with a scenario file as a whole.
type FileError struct {
	File string
	Err  error
}

// Error implements error.
func (e *FileError) Error() string { return "mock scenario " + e.File + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *FileError) Unwrap() error { return e.Err }

// reader collects what is wrong, so that an author sees all mistakes at once.
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

// written is what a short form stands for: a correction can be only its output, a grandchild only how
// long it lives.
func written(n *yamldoc.Node, into reflect.Type) *yamldoc.Node {
	long := map[reflect.Type]string{reflect.TypeFor[Reply](): "output", reflect.TypeFor[Grandchild](): "for"}[into]
	if n.Kind != yamldoc.Scalar || long == "" {
		return n
	}
	return &yamldoc.Node{Kind: yamldoc.Mapping, Pos: n.Pos, Entries: []yamldoc.Entry{{Key: long, Text: long, Pos: n.Pos, Value: n}}}
}

// check reports what no type says.
func (r *reader) check(n *yamldoc.Node, into any, _ string) {
	switch v := into.(type) {
	case *Step:
		// Crashing or hanging for good leaves nothing to answer.
		r.oneAnswer(n, v.Crash == CrashAtStart || v.Hang)
	case *Reply:
		r.oneAnswer(n, false)
	case *Turn:
		if n.Kind == yamldoc.Mapping && v.Say == "" && v.Tool == "" {
			r.fail(n.Pos, "", "a turn says something (say) or calls a tool (tool, args, result)")
		}
	}
}

// oneAnswer reports a reply that says nothing, or more than one thing.
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
		r.fail(n.Pos, "", "want exactly one of output, value, suspend and fail")
	}
}
