// Package agentkit implements everything in an agent except the role's work: arguments, the request and its
// prompt, extraction with corrections, the nodes, and the result line that the engine reads.
//
//	func main() { agentkit.Run(agentkit.Options{Name: "echo", Run: run}) }
//
// Every agent built on it keeps the contract in package protocol:
//   - an agent writes only content nodes: no head, no index, no other thread;
//   - all nodes of a step are committed durably at once, before the result line
//     refers to them; nothing refers to the nodes of an agent that failed;
//   - an answer that does not satisfy the role's schema is never stored as output.
//
// agentkit links no HTTP client. Its API uses only package protocol and the standard library. Package
// agentkittest runs an agent in a test.
package agentkit

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// Options describe an agent. Name and Run are required.
type Options struct {
	Name    string // "echo"; the prefix "uwf-" is added where needed
	Version string // "" uses the build info
	// Run does the role's work. A panic in it fails the step.
	Run func(ctx context.Context, req *Request) (Result, error)
	// Continue sends a message to the session of an earlier Run or Continue, to correct an answer. If it is
	// nil, an invalid answer fails the step.
	Continue func(ctx context.Context, sessionID, message string, req *Request) (Result, error)
	// Structured agents return Result.Value, and their prompt omits the output format.
	Structured bool
	// Resumes: Run continues the session Request.SessionID if it is set.
	// ForksSessions: it can also continue in a copy of a session, as a forked thread needs.
	// CutsSessions: it can continue in a copy truncated at Request.Cut.
	// CopiesSessions: it always continues in a copy, unless Request.Interrupted, so the session stays as its
	// step left it.
	Resumes        bool
	ForksSessions  bool
	CutsSessions   bool
	CopiesSessions bool
	// Enters is for the adapters of this module: Run itself calls Entered of runenv before anything changes the session.
	Enters bool
	// Instant: Run usually returns at once, so signals need not be handled: until Run calls AwaitSignals of package
	// util/proc, they kill the process.
	Instant bool
	// ParseArgs parses the agent's own arguments and returns the rest. It receives the arguments unknown to
	// the kit, in order. An error is a usage error.
	ParseArgs func(args []string) (rest []string, err error)
	// Usage is appended to the kit's --help text.
	Usage string
	// Check describes the program that the agent drives, for --check. Nil if there is none.
	Check func(ctx context.Context) protocol.AgentCheck
	// Dispatch sees the command line first. A tool can use it to run a part of the agent's own program in a
	// separate process, as bind.Dispatch does. If it returns true, the process exits with status. It may be
	// nil.
	Dispatch func(args, environ []string, stderr io.Writer) (status int, dispatched bool)
}

// Result is the outcome of a run. Exactly one of Output, Value and Suspend is set.
type Result struct {
	Output  string // text that begins with a frontmatter block
	Value   any    // structured output: a JSON value, or anything encoding/json can encode
	Suspend string // the question or reason for which the step waits for a person
	// Limit, with Suspend, describes the provider's limit that caused it. Its Err is not used.
	Limit *Failure

	// SessionID identifies the conversation, for Continue and the next visit. It is required: a step without
	// one cannot be traced or corrected.
	SessionID string
	// SessionMark is the current position in the session, in the agent's own format, if the agent can cut a
	// session there. See Request.Cut.
	SessionMark string
	// Turns are the turns of the run, unless they were recorded with [Request.Turn]. The last assistant turn
	// is the answer. Without any turns, the answer is stored as one turn.
	Turns []protocol.Turn
	// Detail can set Model, Outcome, Requests, DurationMs, and an AgentVersion that differs from the agent's
	// own.
	Detail *protocol.Detail
	Usage  *protocol.Usage // usage of this run alone; the kit adds runs up
}

func (o Options) validate() error {
	var err error
	if o.Name == "" {
		err = errors.New("agentkit: Options.Name is required")
	}
	if o.Run == nil {
		err = errors.Join(err, errors.New("agentkit: Options.Run is required"))
	}
	return err
}

// withoutCheck removes --check from the arguments before a "--" if the agent supports it, and reports whether
// it was there.
func withoutCheck(args []string, o Options) ([]string, bool) {
	i := slices.Index(args, protocol.FlagCheck)
	if end := slices.Index(args, "--"); o.Check == nil || i < 0 || end >= 0 && i > end {
		return args, false
	}
	return slices.Delete(slices.Clone(args), i, i+1), true
}

// checked lets the agent parse its own arguments, as before a run.
func checked(args []string, o Options) error {
	if o.ParseArgs == nil {
		return nil
	}
	if _, err := o.ParseArgs(args); err != nil {
		return newUsageError(err.Error(), args, o)
	}
	return nil
}

// check prints the agent's report on its program. A problem is an error.
func check(ctx context.Context, e env.Env, o Options) error {
	dirs, err := home.Find(e, "", "")
	files := config.Of(dirs)
	if err == nil {
		if e, err = files.WithDotEnv(e); err != nil {
			return err
		}
	}
	found := o.Check((&runenv.Run{Env: e, Dirs: dirs, Files: files}).With(ctx))
	line, err := json.Marshal(found)
	if err != nil {
		return err
	}
	if _, err = e.Stdout.Write(append(line, '\n')); err != nil {
		return err
	}
	if n := len(found.Problems); n > 0 {
		return fmt.Errorf("%s found: see stdout", render.Count(n, "problem"))
	}
	return nil
}

// Failure is a run error that another try, or another agent, may avoid.
type Failure struct {
	Kind protocol.FailureKind
	// RetryAt is the time at which the provider's limit resets; zero if unknown.
	RetryAt time.Time
	// Repeated counts the retries of the failed request.
	Repeated int
	Err      error
}

func (f *Failure) Error() string { return f.Err.Error() }

func (f *Failure) Unwrap() error { return f.Err }

// classed adds the failure's class to the result of a failed step.
func classed(r protocol.Result, err error) protocol.Result {
	var f *Failure
	if !errors.As(err, &f) {
		if protocol.OfMachine(err) {
			r.Kind = protocol.FailedMachine
		}
		return r
	}
	return f.in(r)
}

// in adds a failure, which may be nil, to a result.
func (f *Failure) in(r protocol.Result) protocol.Result {
	if f == nil {
		return r
	}
	r.Kind, r.Repeated = f.Kind, f.Repeated
	if !f.RetryAt.IsZero() {
		r.RetryAtMs = f.RetryAt.UnixMilli()
	}
	return r
}

// yields reports whether the engine handles the rate limits of this agent's provider.
func yields(c protocol.Config, alias string) bool {
	on := c.Agents[alias].OnRateLimit
	return on == protocol.LimitWait || on == protocol.LimitFallback
}

// secrets holds texts that must not be stored or printed. Safe for concurrent use.
type secrets struct{ secret.Set }

func (s *secrets) turn(t protocol.Turn) protocol.Turn {
	if s.Empty() {
		return t
	}
	t.Content, t.Reasoning, t.ToolCallID = s.Hide(t.Content), s.Hide(t.Reasoning), s.Hide(t.ToolCallID)
	if r := t.Refused; r != nil {
		t.Refused = &protocol.Refused{Why: s.Hide(r.Why), Number: r.Number, Of: r.Of}
	}
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		t.ToolCalls[i].ID, t.ToolCalls[i].Name, t.ToolCalls[i].Args = s.Hide(call.ID), s.Hide(call.Name), s.HideValue(call.Args)
	}
	return t
}

// unfinished hides secrets in a turn that is still being written, including a possible prefix of a secret at
// the end.
func (s *secrets) unfinished(t protocol.Turn) protocol.Turn {
	t.Content, _ = s.Split(t.Content)
	t.Reasoning, _ = s.Split(t.Reasoning)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		if args, ok := call.Args.(string); ok { // incomplete JSON
			t.ToolCalls[i].Args, _ = s.Split(args)
		}
	}
	return s.turn(t)
}

// hiddenError is an error whose text has its secrets hidden.
type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }

// error hides secrets in an error's text.
func (s *secrets) error(err error) error {
	if err == nil || !s.Holds(err.Error()) {
		return err
	}
	return &hiddenError{text: s.Hide(err.Error()), err: err}
}

// Process describes an agent's process.
type Process struct {
	Args           []string  // without the program name
	Environ        []string  // KEY=value; the last entry for a key applies
	Dir            string    // absolute working directory
	Stdout, Stderr io.Writer // nil discards

	// system is the running process, if the agent is it, with its signals and inherited descriptors. Only then can it be
	// started again.
	system *env.Env
}

// OS returns the description of the running process. It fails if the process's resource limits are too low to
// work in.
func OS() (Process, error) {
	e, err := env.OS()
	return Process{Args: e.Args, Environ: e.Environ, Dir: e.Dir, Stdout: e.Stdout, Stderr: e.Stderr, system: &e}, err
}

// env converts p for the packages below, with the system's clock and randomness.
func (p Process) env() (e env.Env, err error) {
	if p.system == nil {
		e, err = env.OS()
		e.Exe = ""
	} else {
		e = *p.system
	}
	e.Args, e.Environ, e.Dir = p.Args, p.Environ, p.Dir
	e.Stdout, e.Stderr = cmp.Or(p.Stdout, io.Discard), cmp.Or(p.Stderr, io.Discard)
	return e, err
}
