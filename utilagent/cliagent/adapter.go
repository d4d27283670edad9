// Package cliagent turns a coding agent with a command line into a uwf agent.
//
// An [Adapter] describes such an agent: a command line, a pure [Decoder] for the program's output, and a few
// facts. [Options] makes a complete agent of it:
//
//	func main() { agentkit.Run(cliagent.Options(adapter())) }
//
// Every agent built on it guarantees:
//   - the exit status is not the outcome: the decoder judges by the output;
//   - sessions are verified: one that is missing, changed or from another directory
//     causes a new run with the whole prompt, recorded in the step's detail;
//   - usage covers the run alone, with cached tokens separate, even if the program
//     reports running totals;
//   - a run that reaches its limit of turns, time or cost in a session that can be
//     continued suspends the thread, so no work is lost;
//   - every run ends in bounded time, with all processes that it started;
//   - both output streams of the program are kept in the run directory.
//
// The parts:
//   - adapter.go: the adapter; usage.go: helpers for decoders, and stored facts about sessions;
//   - settings.go, program.go: from a command line and a config to a program and its limits;
//   - run.go, try.go: a step, a call of the program, and turning events into turns;
//   - confinement.go: what a program can see and write;
//   - process.go, watch.go, and package output: a child process with bounded time and memory.
package cliagent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/resettime"
)

// Adapter describes a program and how to use it as an agent. Name, Program, and either Command and Decoder or
// Transport are required.
type Adapter struct {
	// Name is the agent's name without "uwf-": "claude-code". The program's path is taken from
	// UWF_CLAUDE_CODE_BIN, or the program is found in PATH.
	Name string
	// Program is the command that people type: "claude". Aliases are alternative names, tried in order.
	Program string
	Aliases []string
	// Install and Login are one-line instructions for a missing program or login, such as "npm install -g
	// @anthropic-ai/claude-code".
	Install string
	Login   string
	Probe   Probe

	// Command returns the command line for a call. An error ends the step.
	Command func(Call) (Invocation, error)
	// Distrusts means that the command line stops the program from obeying files in its directory, such as
	// hooks. Otherwise a step fails if such files exist.
	Distrusts bool
	// Decoder returns the decoder for the output of one call.
	Decoder func(Call) Decoder
	// Transport is set for a program with its own protocol, instead of Command and Decoder. It is called once
	// per step.
	Transport func() Transport

	Sessions Sessions
	Timeouts Timeouts
	// MaxTurns is the default limit of turns per call; 0 uses the program's default.
	MaxTurns int
	// CountsTurns means the program has no turn limit, so the runner counts messages and stops it.
	CountsTurns bool
	// Unset lists variables that the program must not inherit, such as those from an enclosing session of the
	// same program. A name that ends in * is a prefix.
	Unset []string
	// Repeats returns how many times the program itself retries a failed request to its model. Nil means
	// never.
	Repeats func(Call) int
	// Logins lists variables with which the program logs in. It also gets them from .env, but no other
	// secrets from there. A name that ends in * is a prefix.
	Logins []string
	// OwnKey reports whether the user's settings for the program choose a provider that needs no login, and
	// returns the variable that holds its key, or "" if it needs none. It may be nil.
	OwnKey func(env func(string) string) (variable string, own bool)
	// Commanded means that the program and its arguments follow "--" on the agent's command line. They become
	// Call.Bin and Call.Extra; Program, Install and Probe are not used.
	Commanded bool
	// ParseArgs removes the adapter's own arguments from the configured ones and returns the rest for
	// Call.Extra. Nil returns all of them. With Commanded it receives the arguments before "--" and must
	// reject unknown ones.
	ParseArgs func(args []string) (extra []string, err error)
	// Usage is printed by --help.
	Usage string
}

// Probe describes how to query a program's version. The answer is cached until the program's file changes.
type Probe struct {
	Args []string // default --version; the first dotted number is the version
	Help []string // arguments for a second query, answered in Call.Help
	None bool     // the program has no version
	// Min is the oldest supported version. Zero accepts any.
	Min Version
	// Flaws lists versions with known bugs.
	Flaws []Flaw
	// LoggedIn is a command that succeeds only if the user is logged in; Since is the first version that has
	// it. Nil means there is no such command.
	LoggedIn []string
	Since    Version
}

// Flaw describes a bug in some versions and its remedy. It only causes a warning.
type Flaw struct {
	From, Before Version // zero is unbounded
	Text         string  // "resume starts a new session: update to 2.0.30 or later"
}

// Sessions describes how the program handles conversations. The zero value means it assigns IDs itself and
// continues a session by ID in the same directory.
type Sessions struct {
	// None means the program remembers nothing. A correction is sent as the whole prompt with the answer to
	// correct.
	None bool
	// Preset means a new session uses the random UUID in Call.Session.
	Preset bool
	// Forks means it can continue in a copy of a session (Call.Fork).
	Forks bool
	// Cuts means it can also copy a session up to the end of an earlier call (Call.Cut, Outcome.Mark).
	Cuts bool
	// AnyDir means a session can be continued in another directory.
	AnyDir bool
	// CopiesAnywhere reports whether this version can copy a session into another directory, such as another
	// work tree of the repository. A session that is not found there is abandoned. Nil means the same as
	// AnyDir.
	CopiesAnywhere func(Version) bool
	// Renames means it may continue a session under a new ID, with its history. An ID that changes later in a
	// run, after the right one was seen, is always accepted.
	Renames bool
	// Optional means it may report no session, and is then treated as if it remembers nothing.
	Optional bool
	// Unverified means a continued run does not report its ID, so it cannot be compared.
	Unverified bool
}

// Timeouts bound a call. Zero fields use the default; the config can change Start, Idle and Total.
type Timeouts struct {
	Start time.Duration // until the first event; default 1 minute
	Idle  time.Duration // between lines; default 10 minutes
	Tool  time.Duration // between lines while a tool runs; default 20 minutes
	// Retrying bounds how long a program may only repeat requests to its model; default 5 minutes, at most
	// Idle.
	Retrying time.Duration
	Total    time.Duration // all calls of a step; default 1 hour
	Grace    time.Duration // from the terminal event to exit; default 10 seconds
	Stop     time.Duration // between the signals of a stop; default 5 seconds

	whole time.Duration // the step's total, of which Total is a part; see within
}

// Permission limits the actions that a program may perform without asking.
type Permission string

// Permissions. No user can be asked during a run, so anything that is not allowed is refused.
const (
	Bypass   Permission = "full"      // anything; the default
	Edits    Permission = "edits"     // changing files in the working directory
	Readonly Permission = "read-only" // reading
)

// Call is one run of the program.
type Call struct {
	// Retries is the number of times the engine retries the agent in this visit.
	Retries int
	Bin     string  // path of the program
	Version Version // zero if unknown
	Help    string  // output of Probe.Help

	Prompt string
	// Session is the ID of the session to continue if Resume is set; otherwise, with Sessions.Preset, the ID
	// for the new one.
	Session string
	Resume  bool
	Fork    bool      // with Resume: continue in a copy
	Copy    string    // with Fork: the copy's ID, if Sessions.Preset
	Cut     string    // with Fork: the Outcome.Mark at which the copy ends, or ""
	Used    time.Time // with Resume: time of last use, or zero
	Now     time.Time // start of the call

	Cwd    string // absolute, without symbolic links
	RunDir string // existing directory for files that the call needs

	Model      string // in the program's notation; "" for its default
	Permission Permission
	Confined   bool // the sandbox contains anything that the workspace makes it start
	// Hidden lists paths that its commands must not read, for an unconfined program with its own sandbox.
	Hidden     []string
	MaxTurns   int     // 0 for the program's default
	MaxCostUSD float64 // 0 for no limit
	Schema     any     // schema of the role's output, as a JSON value
	Extra      []string
	Env        func(name string) string // the program's environment
	Environ    []string                 // the whole environment
	Secrets    *secret.Set              // all known secrets
}

// Invocation describes how a call is started.
type Invocation struct {
	Bin   string // default Call.Bin
	Args  []string
	Stdin string   // the prompt, if the program reads it from stdin
	Env   []string // KEY=value, added to the inherited environment
	Dir   string   // default Call.Cwd
	// Silent means the program prints nothing until it is done, so only [Timeouts.Total] bounds the call.
	Silent bool
	// Open keeps stdin open after Stdin was written, for a [Transport] or a [MessageReceiver].
	Open bool
	// Files are written before the program starts and removed after it exits. Not for use with a [Transport].
	Files []File

	// Own lists directories that no other call uses, such as those of its session, inside the first of the
	// program's own directories. A confined program can write them. They are created before the call and
	// removed after the step.
	Own []string

	errLine func([]byte) // called for each line of stderr
}

// File is a file that a call needs while it runs.
type File struct {
	Path string // absolute; parent directories are created
	Data []byte
}

// Decoder decodes the output of one call. It is pure: no I/O, no clock, the same result for the same lines.
type Decoder interface {
	// Line decodes a line of stdout, without its line ending. Lines that it does not recognize (known is
	// false) are kept for error messages unless blank; they never fail a run. The slice is valid only during
	// the call.
	Line(line []byte) (events []Event, known bool)
	// End returns the outcome after the program has exited or was stopped.
	End(Exit) Outcome
}

// ErrLiner is a [Decoder] that also reads stderr. Its methods are called one at a time, in order of arrival.
type ErrLiner interface {
	ErrLine(line []byte) []Event
}

// MessageReceiver is a [Decoder] for a program that can receive messages while it works. It was started with
// [Invocation.Open], and confirms each message with a [Heard] event.
type MessageReceiver interface {
	// EncodeMessage returns the bytes that deliver a text on stdin.
	EncodeMessage(id, text string) ([]byte, error)
}

// Exit describes how a program ended.
type Exit struct {
	Code   int    // exit status; -1 after a signal
	Signal string // such as "killed"; "" if it exited
	// Stopped means the runner ended it, after Done or at a limit. Code and Signal are then meaningless.
	Stopped bool
	Stderr  string // head and tail, without colors
	Noise   string // head and tail of unrecognized lines
}

// Outcome is the outcome of a call.
type Outcome struct {
	Kind  OutcomeKind
	Error errorkind.Kind // set if Kind is Failed
	// Message is the program's error text. Hint is advice that goes beyond the general advice for its kind.
	Message string
	Hint    string
	// ResetsAt is the time at which the provider's limit resets, if the program reports it in a field. If
	// zero, the time is parsed from Message.
	ResetsAt time.Time
	// Session is the ID with which the conversation can be continued: the last one the program reported. ""
	// means there is none, as after a failed start, even if an ID was printed.
	Session string
	// Mark is the current position in the conversation, in the program's own format, if it can cut one there.
	// See Sessions.Cuts.
	Mark string
	// Final is the answer if the program marks it. Otherwise the answer is the last text after the last tool
	// event.
	Final string
	// Truncated, with Incomplete, means that the model reached its limit for one reply: its text is only a part.
	Truncated bool
	// Value is the answer as data, if the program was asked for structured output.
	Value any
	// Turns is the number of model messages, if reported.
	Turns int
	Usage Usage
	// Refused lists actions that the program was denied.
	Refused []string
}

// Kind is the type of an [Event].
type Kind int

// Event types. Relevant fields are in brackets.
const (
	// Started: the program reports its session [Session, Model, Version]. Any other event may set Session as
	// well.
	Started Kind = iota + 1
	// Text: a complete text from the model [Text, ID].
	Text
	// Delta: a piece of a text, which ends at an event with another kind or ID [Text, ID].
	Delta
	// Reasoning: the model's thinking, in one or more pieces [Text, ID].
	Reasoning
	// Called: the model calls a tool [Call, ID].
	Called
	// Returned: a tool's result [Call.ID, Text, Failed].
	Returned
	// Break: the next text belongs to a new message.
	Break
	// Retrying: the program is retrying a request to its model [Status, Text]. If [Event.Error] is set,
	// retrying is pointless and the program is stopped.
	Retrying
	// Notice: information for the user that is not part of the conversation [Text].
	Notice
	// MessageReceived: the model received a message from a person [ID: as passed to [MessageReceiver.EncodeMessage]].
	MessageReceived
	// Done: the program has finished. If it does not exit, it is stopped, which does not affect the outcome.
	Done
)

// Event is one reported event.
type Event struct {
	Kind    Kind
	Session string // session ID, if the line has one
	Model   string
	Version string
	// ID identifies the model's message: events with the same ID form one turn. If "", a text after a call
	// begins a new turn.
	ID   string
	Text string
	Call protocol.ToolCall
	// Failed means the tool failed; its turn records that.
	Failed bool
	// Sub means it happened in a subagent. It is recorded but not part of the answer. Name is the subagent,
	// if known.
	Sub    bool
	Status int            // HTTP status, if known
	Error  errorkind.Kind // for Retrying: why retrying is pointless

	message agentkit.Message // for MessageReceived
}

// Transport talks to a program in its own protocol. One Transport serves all calls of a step, so it may keep
// the program running between them.
type Transport interface {
	// Call performs a call and reports events with h.Emit, in order, from one goroutine at a time. When ctx
	// is cancelled, the call must end; the cause says why. The outcome is the program's own report; the
	// runner adds how it was stopped. An error is a failure on uwf's side: the store, the disk, a program
	// that cannot start.
	Call(ctx context.Context, c Call, h *Host) (Outcome, error)
	// Close stops what is still running.
	Close() error
}

// OutcomeKind is the result of a call.
type OutcomeKind string

// Results of calls. Decoders return all but the last three, which only the runner can determine.
const (
	OK         OutcomeKind = "ok"
	Incomplete OutcomeKind = "incomplete" // it ended without an answer, or without marking it
	MaxTurns   OutcomeKind = protocol.OutcomeMaxTurns
	Budget     OutcomeKind = protocol.OutcomeMaxCost
	Refusal    OutcomeKind = "refusal" // the model declined
	Failed     OutcomeKind = "error"

	Timeout     OutcomeKind = "timeout"
	Interrupted OutcomeKind = "interrupted" // by uwf or by the user
	SessionLost OutcomeKind = "session_lost"
)

// resetsAt returns the time at which the limit that failed the call resets, or zero if unknown.
func (o Outcome) resetsAt(now time.Time) time.Time {
	if !o.ResetsAt.IsZero() {
		return o.ResetsAt
	}
	return resettime.In(o.Message, now)
}

// Error kinds in addition to those of package errorkind.
const (
	NotInstalled errorkind.Kind = "not_installed"
	TooOld       errorkind.Kind = "too_old"
	Crashed      errorkind.Kind = "crashed"
)

// Fail returns the outcome of a call that failed with a message. An empty message is replaced by the end of
// the program's output.
func Fail(kind errorkind.Kind, message string, e Exit) Outcome {
	if strings.TrimSpace(message) == "" {
		message = e.Output()
	}
	return Outcome{Kind: Failed, Error: kind, Message: message}
}

// Unfinished returns the outcome of a program that ended without reporting a result: an error found in its
// messages, a crash, or an early exit.
func (e Exit) Unfinished() Outcome {
	output := e.Output()
	kind := errorkind.OfText(output)
	switch {
	case e.Stopped, e.Code == 0 && kind == errorkind.Unknown:
		return Outcome{Kind: Incomplete, Message: output}
	case kind != errorkind.Unknown:
		return Fail(kind, output, e)
	case e.Signal != "":
		return Fail(Crashed, strings.TrimSpace("it was ended by a signal: "+e.Signal+"\n"+output), e)
	}
	return Fail(Crashed, strings.TrimSpace(fmt.Sprintf("exit status %d\n%s", e.Code, output)), e)
}

// Output returns the unrecognized output of the program, for a message.
func (e Exit) Output() string {
	var output []string
	for _, text := range []string{e.Stderr, e.Noise} {
		if text = strings.TrimSpace(text); text != "" {
			output = append(output, text)
		}
	}
	return strings.Join(output, "\n")
}

// ErrCannotFork is returned by [Adapter.Command] if the installed version cannot copy a session. The step
// then starts over with the whole prompt.
var ErrCannotFork = errors.New("this version cannot copy a session")

// Error reports why a program could not do a step's work.
type Error struct {
	Program      string
	Kind         errorkind.Kind
	Text         string
	Hint         string   // command that helps, or ""
	SandboxHints []string // hints about the sandbox
	Logs         string   // location of the stream logs, or ""
}

func (e *Error) Error() string { return e.Text }

// OfMachine reports whether the error concerns this machine; see [protocol.OfMachine].
func (e *Error) OfMachine() bool { return e.Kind == NotInstalled || e.Kind == errorkind.Auth }

// Hints returns what to do about the error.
func (e *Error) Hints() []string {
	var hints []string
	if e.Hint != "" {
		hints = append(hints, e.Hint)
	}
	hints = append(hints, e.SandboxHints...)
	if e.Logs != "" {
		hints = append(hints, "its whole output is in "+e.Logs)
	}
	return hints
}

// maxShown bounds the program output in an error.
const maxShown = 2000

// Excerpt returns the end of a text, where programs report why they exit.
func Excerpt(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxShown {
		s = "…" + strings.ToValidUTF8(s[len(s)-maxShown:], "")
	}
	return s
}

// isPlain reports whether a session ID or mark is safe on a command line. An ID comes from a program's output, and so
// perhaps from its model or from another user's thread, and it becomes an argument: it must not be an option, a path or
// a text with markup. Programs with a Transport don't get it there.
func (a Adapter) isPlain(id string) bool {
	const longest = 200
	first := true
	strange := func(c rune) bool {
		plain := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || !first && strings.ContainsRune("._:@=+~-", c)
		first = false
		return !plain
	}
	return a.Transport != nil || id != "" && len(id) <= longest && !strings.ContainsFunc(id, strange)
}

// plain removes invalid IDs from an outcome.
func (r *runner) plain(out *tried) {
	if out.Session != "" && !r.adapter.isPlain(out.Session) {
		r.note("invalid session id, so the session cannot be continued: %q", out.Session[:min(len(out.Session), 60)])
		out.Session = ""
	}
	if out.Mark != "" && !r.adapter.isPlain(out.Mark) {
		out.Mark = ""
	}
}

// InSession sets the session of events, and returns them.
func InSession(id string, events []Event) []Event {
	for i := range events {
		events[i].Session = id
	}
	return events
}

// TakeFlags sets the flags with these names, each NAME VALUE or NAME=VALUE, and returns the other arguments.
func TakeFlags(args []string, set func(name, value string) error, names ...string) (rest []string, err error) {
	for i := 0; i < len(args); i++ {
		name, value, attached := strings.Cut(args[i], "=")
		if !slices.Contains(names, name) {
			rest = append(rest, args[i])
			continue
		}
		if !attached {
			if i++; i == len(args) {
				return nil, fmt.Errorf("%s needs a value", name)
			}
			value = args[i]
		}
		if err := set(name, value); err != nil {
			return nil, err
		}
	}
	return rest, nil
}
