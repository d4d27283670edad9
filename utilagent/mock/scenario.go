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
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/yamldoc"
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

// Parse reads a scenario. The error names the file, and every mistake with its
// place. The original's files ({steps: [{role, output}]}) are scenarios.
func Parse(file string, src []byte) (Scenario, error) {
	r := &reader{file: file}
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
	if doc.Root.Get("steps") == nil && doc.Root.Get("roles") == nil {
		r.fail(doc.Root.Pos, "mock data must be a mapping with a 'steps' list, or with 'roles'")
		return s, r.err()
	}
	r.mapping(doc.Root, "a scenario", map[string]func(*yamldoc.Node){
		"repeat": r.flag(&s.Repeat),
		"steps":  func(n *yamldoc.Node) { s.Steps = r.steps(n, "steps") },
		"roles":  func(n *yamldoc.Node) { s.Roles = r.roles(n) },
	})
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

func (r *reader) steps(n *yamldoc.Node, what string) (list []Step) {
	r.list(n, what, func(item *yamldoc.Node) { list = append(list, r.step(item)) })
	return list
}

// roles are lists of steps by role.
func (r *reader) roles(n *yamldoc.Node) map[string][]Step {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "roles must be a mapping from role to a list of steps")
		return nil
	}
	roles := map[string][]Step{}
	for _, f := range n.Entries {
		roles[f.Key] = r.steps(f.Value, "the steps of role "+f.Key)
	}
	return roles
}

func (r *reader) step(n *yamldoc.Node) Step {
	var s Step
	keys := map[string]func(*yamldoc.Node){
		"role":    r.text(&s.Role),
		"session": r.text(&s.Session),
		"corrections": func(n *yamldoc.Node) {
			r.list(n, "corrections", func(item *yamldoc.Node) { s.Corrections = append(s.Corrections, r.correction(item)) })
		},
		"files": func(n *yamldoc.Node) { s.Files = r.files(n) },
	}
	maps.Copy(keys, r.replyKeys(&s.Reply))
	maps.Copy(keys, r.faultKeys(&s.Faults))
	r.mapping(n, "a step", keys)
	// Crashing or hanging for good leaves nothing to answer.
	r.oneAnswer(n, s.Reply, s.Crash == CrashAtStart || s.Hang)
	return s
}

// correction is a reply, or only its output.
func (r *reader) correction(n *yamldoc.Node) Reply {
	var reply Reply
	if n.Kind == yamldoc.Scalar {
		r.optionalText(&reply.Output)(n)
		return reply
	}
	r.mapping(n, "a correction", r.replyKeys(&reply))
	r.oneAnswer(n, reply, false)
	return reply
}

func (r *reader) replyKeys(reply *Reply) map[string]func(*yamldoc.Node) {
	return map[string]func(*yamldoc.Node){
		"output":  r.optionalText(&reply.Output),
		"value":   r.value(&reply.Value),
		"suspend": r.text(&reply.Suspend),
		"fail":    r.text(&reply.Fail),
		"delay":   r.duration(&reply.Delay),
		"usage":   func(n *yamldoc.Node) { reply.Usage = r.usage(n) },
		"turns": func(n *yamldoc.Node) {
			r.list(n, "turns", func(item *yamldoc.Node) { reply.Turns = append(reply.Turns, r.turn(item)) })
		},
	}
}

// oneAnswer reports a reply that says nothing, or more than one thing.
func (r *reader) oneAnswer(n *yamldoc.Node, reply Reply, mayBeNone bool) {
	if n.Kind != yamldoc.Mapping {
		return // reported already
	}
	answers := 0
	for _, key := range []string{"output", "value", "suspend", "fail"} {
		if n.Get(key) != nil {
			answers++
		}
	}
	if answers > 1 || answers == 0 && !mayBeNone {
		r.fail(n.Pos, "want exactly one of output, value, suspend and fail")
	}
	if n.Get("value") != nil && reply.Value == nil {
		r.fail(n.Get("value").Pos, "value must not be null")
	}
}

func (r *reader) turn(n *yamldoc.Node) Turn {
	var t Turn
	r.mapping(n, "a turn", map[string]func(*yamldoc.Node){
		"say": r.text(&t.Say), "tool": r.text(&t.Tool), "args": r.value(&t.Args),
		"result": r.text(&t.Result), "delay": r.duration(&t.Delay),
	})
	if n.Kind == yamldoc.Mapping && t.Say == "" && t.Tool == "" {
		r.fail(n.Pos, "a turn says something (say) or calls a tool (tool, args, result)")
	}
	return t
}

func (r *reader) files(n *yamldoc.Node) []File {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "files must be a mapping from path to content")
		return nil
	}
	var files []File
	for _, e := range n.Entries {
		f := File{Path: e.Text}
		r.text(&f.Content)(e.Value)
		files = append(files, f)
	}
	return files
}

func (r *reader) usage(n *yamldoc.Node) *protocol.Usage {
	var u protocol.Usage
	var turns int64
	r.mapping(n, "usage", map[string]func(*yamldoc.Node){
		"turns": r.natural(&turns), "inputTokens": r.natural(&u.InputTokens), "outputTokens": r.natural(&u.OutputTokens),
		"cacheReadTokens": r.natural(&u.CacheReadTokens), "cacheWriteTokens": r.natural(&u.CacheWriteTokens),
		"reasoningTokens": r.natural(&u.ReasoningTokens), "durationMs": r.natural(&u.DurationMs),
		"costUsd": func(n *yamldoc.Node) { u.CostUSD = r.cost(n) },
	})
	u.Turns = int(turns)
	return &u
}

func (r *reader) cost(n *yamldoc.Node) *float64 {
	switch v := n.Scalar.(type) {
	case int64:
		cost := float64(v)
		return &cost
	case float64:
		return &v
	}
	r.fail(n.Pos, "want a number")
	return nil
}

func (r *reader) faultKeys(f *Faults) map[string]func(*yamldoc.Node) {
	return map[string]func(*yamldoc.Node){
		"stdout":      r.text(&f.Stdout),
		"stderr":      r.text(&f.Stderr),
		"stdoutBytes": r.natural(&f.StdoutBytes),
		"hang":        r.flag(&f.Hang),
		"deaf":        r.flag(&f.Deaf),
		"resultLine":  r.optionalText(&f.ResultLine),
		"crash":       func(n *yamldoc.Node) { f.Crash = r.crash(n) },
		"exit": func(n *yamldoc.Node) {
			var status int64
			r.natural(&status)(n)
			code := int(status)
			f.Exit = &code
		},
		"grandchild": func(n *yamldoc.Node) {
			if n.Kind == yamldoc.Scalar {
				r.duration(&f.Grandchild.For)(n)
				return
			}
			r.mapping(n, "a grandchild", map[string]func(*yamldoc.Node){
				"for": r.duration(&f.Grandchild.For), "pidFile": r.text(&f.Grandchild.PidFile),
			})
		},
	}
}

func (r *reader) crash(n *yamldoc.Node) Crash {
	points := []Crash{CrashAtStart, CrashBeforeCommit, CrashAfterCommit, CrashAfterResult}
	if slices.Contains(points, Crash(n.Text)) {
		return Crash(n.Text)
	}
	names := make([]string, len(points))
	for i, p := range points {
		names[i] = string(p)
	}
	r.fail(n.Pos, "crash must be one of %s", strings.Join(names, ", "))
	return ""
}

// reader reads typed values out of YAML and collects what is wrong, so that an
// author sees all mistakes at once.
type reader struct {
	file     string
	problems []error
}

func (r *reader) fail(at yamldoc.Pos, format string, args ...any) {
	r.problems = append(r.problems, fmt.Errorf("%s:%d:%d: %s", r.file, at.Line, at.Column, fmt.Sprintf(format, args...)))
}

func (r *reader) err() error { return errors.Join(r.problems...) }

// mapping calls the reader of each key. A key without one is a mistake.
func (r *reader) mapping(n *yamldoc.Node, what string, keys map[string]func(*yamldoc.Node)) {
	if n.Kind != yamldoc.Mapping {
		r.fail(n.Pos, "%s must be a mapping", what)
		return
	}
	for _, e := range n.Entries {
		read, ok := keys[e.Key]
		if !ok {
			r.unknown(e, what, keys)
			continue
		}
		read(e.Value)
	}
}

func (r *reader) unknown(e yamldoc.Entry, what string, keys map[string]func(*yamldoc.Node)) {
	var names []string
	for k := range keys {
		names = append(names, k)
	}
	slices.Sort(names)
	if near := suggest.Nearest(e.Key, names, 1); len(near) > 0 {
		r.fail(e.Pos, "%s has no key %q: did you mean %q?", what, e.Key, near[0])
		return
	}
	r.fail(e.Pos, "%s has no key %q; it has: %s", what, e.Key, strings.Join(names, ", "))
}

func (r *reader) list(n *yamldoc.Node, what string, each func(*yamldoc.Node)) {
	if n.Kind != yamldoc.Sequence {
		r.fail(n.Pos, "%s must be a list", what)
		return
	}
	for _, item := range n.Items {
		each(item)
	}
}

// The readers below return a function that reads a value into a variable.

func (r *reader) text(into *string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		s, ok := n.Scalar.(string)
		if n.Kind != yamldoc.Scalar || !ok {
			r.fail(n.Pos, "want a text")
			return
		}
		*into = s
	}
}

func (r *reader) optionalText(into **string) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		var s string
		r.text(&s)(n)
		*into = &s
	}
}

func (r *reader) flag(into *bool) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		b, ok := n.Scalar.(bool)
		if !ok {
			r.fail(n.Pos, "want true or false")
			return
		}
		*into = b
	}
}

func (r *reader) natural(into *int64) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		i, ok := n.Scalar.(int64)
		if !ok || i < 0 {
			r.fail(n.Pos, "want a whole number, 0 or more")
			return
		}
		*into = i
	}
}

func (r *reader) duration(into *time.Duration) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) {
		d, err := time.ParseDuration(n.Text)
		if n.Kind != yamldoc.Scalar || err != nil || d < 0 {
			r.fail(n.Pos, "want a duration such as 200ms or 1m30s")
			return
		}
		*into = d
	}
}

func (r *reader) value(into *any) func(*yamldoc.Node) {
	return func(n *yamldoc.Node) { *into = n.Value() }
}
