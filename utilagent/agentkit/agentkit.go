// Package agentkit is what an agent's main calls. It does everything but the
// role's work: arguments, the request with its prompt, extraction with
// corrections, the nodes, and the result line that the engine waits for.
//
//	func main() { agentkit.Run(agentkit.Options{Name: "echo", Run: run}) }
//
// What holds for every agent built on it (the contract is package protocol):
//   - an agent writes content only; no head, no index, no other thread;
//   - all nodes of a step become durable in one commit, before the result line
//     names them; an agent that fails leaves nothing that anything refers to;
//   - an answer that does not satisfy the role's schema is never stored as output.
//
// agentkit links no HTTP client. Its signatures need package protocol and the
// standard library. Package agentkittest runs an agent in a test.
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
	Name    string // "echo"; the prefix "uwf-" is added where it belongs
	Version string // "": from the build info
	// Run does the role's work. A panic in it is an error of the step.
	Run func(ctx context.Context, req *Request) (Result, error)
	// Continue sends a message into the session of an earlier Run or Continue,
	// to correct an answer. Nil: the agent cannot, and an answer that is not
	// valid fails the step.
	Continue func(ctx context.Context, sessionID, message string, req *Request) (Result, error)
	// Structured: the agent returns Result.Value; the prompt leaves the format out.
	Structured bool
	// Resumes: Run goes on in the session Request.SessionID when that is set.
	// ForksSessions: it can also go on in a copy of a session, as a forked thread needs.
	// CutsSessions: and in a copy of its beginning, up to Request.Cut.
	// CopiesSessions: it always goes on in a copy, unless Request.Interrupted, so that
	// a session stays as its step has left it.
	Resumes        bool
	ForksSessions  bool
	CutsSessions   bool
	CopiesSessions bool
	// ParseArgs takes the agent's own arguments out of args and returns the rest.
	// It sees what the kit does not know, in order; an error is a usage error.
	ParseArgs func(args []string) (rest []string, err error)
	// Usage is shown by --help, after the kit's own text.
	Usage string
	// Check reports the program that the agent drives, for --check. Nil: there is none.
	Check func(ctx context.Context) protocol.AgentCheck
	// Dispatch sees the command line before anything else: a tool may start the
	// agent's own program for a part that needs a process, such as
	// bind.Dispatch. If it returns true that was one, and its status is the exit
	// status. Nil: there is none.
	Dispatch func(args, environ []string, stderr io.Writer) (status int, dispatched bool)
}

// Result is what a run leads to. One of Output, Value and Suspend is set.
type Result struct {
	Output  string // text that begins with a frontmatter block
	Value   any    // structured data instead: a JSON value, or what encoding/json can write
	Suspend string // a reason to wait for a person instead
	// Limit, with Suspend: the provider's limit is the reason. Its Err is not used.
	Limit *Failure
	// ExtractedBy says how Value was won; "": the agent returned it as data.
	ExtractedBy protocol.ExtractedBy

	// SessionID names the conversation, for Continue and the next turn. It is
	// required, since a step without one cannot be traced or corrected.
	SessionID string
	// SessionMark is where the session is now, in words of the agent, if it can cut
	// one there: see Request.Cut.
	SessionMark string
	// Turns is what happened inside, if it was not recorded with [Request.Turn].
	// Its last assistant turn is the answer. Neither: the answer is kept as one turn.
	Turns []protocol.Turn
	// Detail may say Model, Outcome, Requests, DurationMs, and AgentVersion if it
	// is not the agent's own.
	Detail *protocol.Detail
	Usage  *protocol.Usage // of this run alone; the kit adds up
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

// withoutCheck takes --check out of the arguments before a "--", if the agent
// knows what to say.
func withoutCheck(args []string, o Options) ([]string, bool) {
	i := slices.Index(args, protocol.FlagCheck)
	if end := slices.Index(args, "--"); o.Check == nil || i < 0 || end >= 0 && i > end {
		return args, false
	}
	return slices.Delete(slices.Clone(args), i, i+1), true
}

// checked lets the agent read its own arguments, as before a run.
func checked(args []string, o Options) error {
	if o.ParseArgs == nil {
		return nil
	}
	if _, err := o.ParseArgs(args); err != nil {
		return newUsageError(err.Error(), args, o)
	}
	return nil
}

// check prints what the agent says of its program. A problem is an error.
func check(ctx context.Context, e env.Env, o Options) error {
	dirs, err := home.Find(e, "", "")
	if err == nil {
		if e, err = config.LoadDotEnv(dirs.DotEnv(), e); err != nil {
			return err
		}
	}
	found := o.Check((&runenv.Run{Env: e, Dirs: dirs}).With(ctx))
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

// Failure is an error of a run that another try, or another agent, may not meet.
type Failure struct {
	Kind protocol.FailureKind
	// RetryAt is when the provider says that there is more; zero: it does not say.
	RetryAt time.Time
	// Repeated is how often the request that failed was repeated.
	Repeated int
	Err      error
}

// Error implements error.
func (f *Failure) Error() string { return f.Err.Error() }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Err }

// classed adds to the result of a failed step what sort of failure it is.
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

// in adds a failure, nil for none, to a result.
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

// yields reports whether the engine deals with the limits of this agent's provider.
func yields(c protocol.Config, alias string) bool {
	on := c.Agents[alias].OnRateLimit
	return on == protocol.LimitWait || on == protocol.LimitFallback
}

// secrets are texts that must not be stored or printed. Safe for concurrent use.
type secrets struct{ secret.Set }

// turn hides secrets in a turn.
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

// unfinished hides secrets in a turn that is still being written: also what may
// be the beginning of one.
func (s *secrets) unfinished(t protocol.Turn) protocol.Turn {
	t.Content, _ = s.Split(t.Content)
	t.Reasoning, _ = s.Split(t.Reasoning)
	t.ToolCalls = slices.Clone(t.ToolCalls)
	for i, call := range t.ToolCalls {
		if args, ok := call.Args.(string); ok { // a piece of JSON
			t.ToolCalls[i].Args, _ = s.Split(args)
		}
	}
	return s.turn(t)
}

// hiddenError is an error whose text holds no secret.
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

// Process is what an agent knows about its process.
type Process struct {
	Args           []string  // without the program's name
	Environ        []string  // KEY=value; the last one of a key wins
	Dir            string    // absolute working directory
	Stdout, Stderr io.Writer // nil: what is written is discarded

	// real: the agent is the running process, with its signals and what it has
	// inherited.
	real bool
	exe  string // "": there is no program that could be started again
}

// OS returns the facts of the running process. It fails if the limits of the
// process are too narrow to work in.
func OS() (Process, error) {
	e, err := env.OS()
	return Process{Args: e.Args, Environ: e.Environ, Dir: e.Dir, Stdout: e.Stdout, Stderr: e.Stderr, real: true, exe: e.Exe}, err
}

// env is the process for the packages below, with the system's clock and randomness.
func (p Process) env() (env.Env, error) {
	e, err := env.OS()
	e.Args, e.Environ, e.Dir, e.Exe = p.Args, p.Environ, p.Dir, p.exe
	e.Stdout, e.Stderr = cmp.Or(p.Stdout, io.Discard), cmp.Or(p.Stderr, io.Discard)
	return e, err
}
