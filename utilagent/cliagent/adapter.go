// Package cliagent makes an agent of another program: somebody's coding agent
// with a command line of its own.
//
// An agent is described by an [Adapter]: a command line, a pure [Decoder] of what
// the program prints, and a few facts. [Options] makes the whole agent of it:
//
//	func main() { agentkit.Run(cliagent.Options(adapter())) }
//
// What holds for every agent built on it:
//   - the exit status is not the outcome: the decoder judges by what was printed;
//   - a session is verified, never believed: one that is missing, changed or of
//     another directory leads to a fresh run with the whole prompt, and the
//     step's detail says so;
//   - usage is of the run alone, cached tokens apart, also where the program
//     counts on;
//   - a run that reaches its limit of turns, time or cost in a session that can
//     go on suspends the thread; no work is lost;
//   - every run ends in bounded time, with all processes that it started;
//   - both streams of the program are kept in the run directory.
//
// The parts:
//   - adapter.go: what an adapter is; usage.go: what decoders share, and what is remembered
//     of a session;
//   - settings.go, program.go: from a command line and a config to a program and its limits;
//   - run.go, try.go: one step, one call of it, how events become turns, and what comes of them;
//   - confinement.go: what a program may see and write;
//   - process.go, watch.go, and package output: a child that always ends, and takes no more
//     memory than it should.
package cliagent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/errorkind"
	"github.com/united-workforce/uwf/utilagent/resettime"
)

// Adapter describes a program and how to use it as an agent. Name, Program, and
// either Command and Decoder or Transport are required.
type Adapter struct {
	// Name is the agent's, without "uwf-": "claude-code". The program is looked
	// for in UWF_CLAUDE_CODE_BIN first, then on PATH.
	Name string
	// Program is the program's name as people type it: "claude". Aliases are other
	// names that it may have, tried in order.
	Program string
	Aliases []string
	// Install and Login tell a person what to do when the program is missing or
	// refuses: one line each, such as "npm install -g @anthropic-ai/claude-code".
	Install string
	Login   string
	Probe   Probe

	// Command is the command line for a call. An error ends the step.
	Command func(Call) (Invocation, error)
	// Distrusts reports that the command line keeps a version from obeying files in its directory,
	// such as hooks. Nil: no version can be kept from it, and a step fails where there are such
	// files.
	Distrusts func(Version) bool
	// Decoder reads what a call prints; it is used for that call only.
	Decoder func(Call) Decoder
	// Transport is for a program that needs its own protocol, instead of Command and Decoder. It
	// is made once per step. Nil: lines.
	Transport func() Transport

	Sessions Sessions
	Timeouts Timeouts
	// MaxTurns is the default limit of turns of one call; 0: the program's own.
	MaxTurns int
	// CountsTurns: the program has no limit of turns, so that the runner counts
	// its messages and stops it.
	CountsTurns bool
	// Unset are variables that the program must not inherit, such as those of an
	// outer session of itself. A name that ends with * is a prefix.
	Unset []string
	// Repeats is how often the program itself repeats a request that its model's endpoint refuses or fails,
	// before it gives up. Nil: never.
	Repeats func(Call) int
	// Logins are variables with which the program logs in. It also gets them from .env, but no
	// other secrets from there. A name that ends with * is a prefix.
	Logins []string
	// OwnKey reports whether the user's settings of the program choose a provider that needs no login, and returns
	// the variable that holds its key; "": it needs none. Nil: there are no such settings.
	OwnKey func(env func(string) string) (variable string, own bool)
	// Commanded: the program and its arguments follow "--" on the agent's own command line; they
	// become Call.Bin and Call.Extra. Program, Install and Probe are then not used.
	Commanded bool
	// ParseArgs takes the adapter's own arguments out of the configured ones, and returns the rest
	// for Call.Extra. Nil: all of them. With Commanded it sees those before the "--", and must
	// know all of them.
	ParseArgs func(args []string) (extra []string, err error)
	// Usage is shown by --help.
	Usage string
}

// Probe tells how to learn a program's version. The answer is remembered for as
// long as the program's file stays the same.
type Probe struct {
	Args []string // nil: --version. The first number with a dot is the version.
	Help []string // if set: arguments of a second question, answered in Call.Help
	None bool     // there is no version to be had
	// Min is the oldest version that works; an older one is refused. Zero: any.
	Min Version
	// Flaws are versions that are known to break something.
	Flaws []Flaw
	// LoggedIn are arguments with which the program succeeds only if somebody is logged in; Since
	// is the first version that knows them. Nil: it cannot be asked.
	LoggedIn []string
	Since    Version
}

// Flaw says what is broken in some versions, and what to do about it. It is only a warning:
// the run goes on.
type Flaw struct {
	From, Before Version // zero: without a bound
	Text         string  // "resume starts a new session: update to 2.0.30 or later"
}

// Sessions tells what the program can do with its conversations. The zero value:
// it makes their ids itself, and continues them by id, in the same directory.
type Sessions struct {
	// None: the program remembers nothing. A correction is then sent as the whole prompt, with the
	// answer that it corrects.
	None bool
	// Preset: a new session gets its id from us, a random UUID in Call.Session.
	Preset bool
	// Forks: it can go on in a copy of a session (Call.Fork).
	Forks bool
	// Cuts: and in a copy of its beginning (Call.Cut), up to where an earlier call
	// ended (Outcome.Mark).
	Cuts bool
	// AnyDir: a session can be continued in another directory.
	AnyDir bool
	// CopiesAnywhere reports that a copy can be made in another directory, such as another work tree of the repository,
	// in this version. A session that is not found there is given up. Nil: as AnyDir.
	CopiesAnywhere func(Version) bool
	// Renames reports that a continued session comes back under another id, with
	// its history, in this version. Nil: never. An id that changes later in a run,
	// after the right one was seen, is always accepted.
	Renames func(Version) bool
	// Optional: it may name no session, and is then used as if it remembered nothing.
	Optional bool
	// Unverified: a continued run does not report its id, so there is nothing to compare.
	Unverified bool
}

// Timeouts bound a call. A zero field is the default; the config can change Start,
// Idle and Total.
type Timeouts struct {
	Start time.Duration // to the first event; default 1 minute
	Idle  time.Duration // between two lines; default 10 minutes
	Tool  time.Duration // between two lines while a tool runs; default 20 minutes
	// Retrying is how long a program may do nothing but repeat requests to its model; default 5
	// minutes, and never more than Idle.
	Retrying time.Duration
	Total    time.Duration // of all calls of a step; default 1 hour
	Grace    time.Duration // from the terminal event to the program's end; default 10 seconds
	Stop     time.Duration // between the signals of a stop; default 5 seconds

	whole time.Duration // that Total is a part of; see within
}

// Permission says what a program may do without asking.
type Permission string

// What a program may do. Nobody can be asked during a run, so whatever is not allowed is
// refused.
const (
	Bypass   Permission = "full"      // anything; the default
	Edits    Permission = "edits"     // change files in the working directory
	Readonly Permission = "read-only" // read
)

// Call is one run of the program.
type Call struct {
	// Retries is how often the engine runs the agent again in this visit.
	Retries int
	Bin     string  // path of the program
	Version Version // zero if it is not known
	Help    string  // what Probe.Help printed

	Prompt string
	// Session is the id of the session to continue, if Resume is set; else the id
	// that a new one must get, if Sessions.Preset.
	Session string
	Resume  bool
	Fork    bool      // with Resume: continue in a copy
	Copy    string    // with Fork: the id that the copy must get, if Sessions.Preset
	Cut     string    // with Fork: the Outcome.Mark at which the copy must end; "": all of it
	Used    time.Time // with Resume: when it was used last; zero: not known
	Now     time.Time // when the call began

	Cwd    string // absolute, without symbolic links
	RunDir string // where files that the call needs may be put; exists

	Model      string // as the program calls it; "": its own default
	Permission Permission
	Confined   bool // what the workspace makes it start can do no harm
	// Hidden are files and directories that its commands must not read, for a program
	// that holds them back itself and is not confined.
	Hidden     []string
	MaxTurns   int     // 0: the program's default
	MaxCostUSD float64 // 0: any
	Schema     any     // of the role's output, as a JSON value
	Extra      []string
	Env        func(name string) string // of the program's environment
	Environ    []string                 // all of it
	Secrets    *secret.Set              // all that are known
}

// Invocation is how a call is started.
type Invocation struct {
	Bin   string // "": Call.Bin
	Args  []string
	Stdin string   // the prompt, if the program reads it there; then stdin ends
	Env   []string // KEY=value, added to what the adapter inherited
	Dir   string   // "": Call.Cwd
	// Silent: the program prints nothing until its work is done, so its silence means nothing, and
	// only [Timeouts.Total] bounds the call.
	Silent bool
	// Open keeps stdin open after Stdin was written, for a [Transport] or a [Hearer].
	Open bool
	// Files are written before the program starts, and removed when it has ended. Only for a
	// program driven by lines.
	Files []File

	// Own are directories that no other call uses, such as those of its session, inside the first
	// of the program's own directories. A confined program may write them. They are made before
	// the call and removed after the step.
	Own []string

	errLine func([]byte) // told of each line of stderr
}

// File is a file that a call needs while it runs.
type File struct {
	Path string // absolute; its directory is made if it is missing
	Data []byte
}

// Decoder reads what one call prints. It is pure: no I/O, no clock, the same
// answer for the same lines.
type Decoder interface {
	// Line reads a line of stdout, without its line end. Lines that it does not
	// know at all (known is false) are kept for error messages, unless they are
	// blank; they never fail a run. The slice is only valid during the call.
	Line(line []byte) (events []Event, known bool)
	// End judges the call when the program has ended, or was stopped.
	End(Exit) Outcome
}

// ErrLiner is a [Decoder] that reads stderr too. Its methods are called one at a
// time, in the order in which the lines arrive.
type ErrLiner interface {
	ErrLine(line []byte) []Event
}

// MessageReceiver is a [Decoder] of a program that can be told something while it works: of one
// that was started with [Invocation.Open], and says so by an event [Heard].
type MessageReceiver interface {
	// Tell is what goes to stdin for a text.
	Tell(id, text string) ([]byte, error)
}

// Exit is how a program ended.
type Exit struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // such as "killed"; "" if it exited
	// Stopped: the runner ended it, after Done or at a limit; then Code and Signal
	// mean nothing.
	Stopped bool
	Stderr  string // head and tail, without colours
	Noise   string // head and tail of the lines that the decoder did not know
}

// Outcome is what became of a call.
type Outcome struct {
	Kind  OutcomeKind
	Error errorkind.Kind // with Kind Failed
	// Message is what the program said, for a person; Hint is what to do, if there
	// is more to say than for every failure of its kind.
	Message string
	Hint    string
	// ResetsAt is when the provider's limit is reset, if the program says so in a field. Zero: the words of
	// Message may.
	ResetsAt time.Time
	// Session is the id by which the conversation can be continued: the last one
	// that the program told. "": there is none, as after a start that failed, even
	// if an id was printed.
	Session string
	// Mark is where the conversation is now, in the program's own words, if it can
	// cut one there: see Sessions.Cuts.
	Mark string
	// Final is the answer, where the program says what it is. "": the last text
	// after the last tool event.
	Final string
	// Value is the answer as data, where the program was made to give it as such.
	Value any
	// Turns is how many messages the model wrote, if the program says so.
	Turns int
	Usage Usage
	// Refused is what the program asked for and was not allowed to do.
	Refused []string
}

// Kind tells what an [Event] is.
type Kind int

// What a program reports while it runs. The fields that matter are in brackets.
const (
	// Started: the program says which session it is in [Session, Model, Version].
	// Any other event may bring Session too.
	Started Kind = iota + 1
	// Text: a text of the model that is complete [Text, ID].
	Text
	// Delta: a piece of a text that continues until an event of another kind or ID [Text, ID].
	Delta
	// Reasoning: what the model thinks, in one piece or several [Text, ID].
	Reasoning
	// Called: the model calls a tool [Call, ID].
	Called
	// Returned: a tool's result [Call.ID, Text, Failed].
	Returned
	// Break: the text that follows is another message.
	Break
	// Retrying: the program is repeating a request to its model by itself [Status, Text]. With
	// [Event.Error] the repetition is hopeless, and the program is stopped.
	Retrying
	// Notice: something for a person to know, which is not part of the conversation [Text].
	Notice
	// Heard: the model has been told what a person said while it worked [ID: the one given to
	// [Hearer.Tell]].
	Heard
	// Done: the program has nothing more to say. If it does not end now, it is
	// stopped, and that changes nothing about the outcome.
	Done
)

// Event is one thing that a program tells.
type Event struct {
	Kind    Kind
	Session string // id of the session, wherever a line has one
	Model   string
	Version string
	// ID is the model message's: what has the same ID is one turn. "" where the
	// program has none: then a text after a call begins a new turn.
	ID   string
	Text string
	Call protocol.ToolCall
	// Failed: the tool failed; its turn says so.
	Failed bool
	// Sub: it happened in a sub-agent. It is kept, but is not part of the answer. Name says which
	// sub-agent, if that is known.
	Sub    bool
	Status int            // of an HTTP request, if known
	Error  errorkind.Kind // Retrying: retrying is in vain

	letter agentkit.Message // Heard: what it was told
}

// Transport talks to a program in its own protocol. One serves all calls of a step, so it may
// keep the program running between them.
type Transport interface {
	// Call carries out a call and tells what happens by h.Emit, in order, from one
	// goroutine at a time. ctx ends when the call must: its cause says why. The
	// outcome is what the program said; how it was stopped is for the runner. An
	// error is of our own side: the store, the disk, a program that cannot start.
	Call(ctx context.Context, c Call, h *Host) (Outcome, error)
	// Close ends what still runs.
	Close() error
}

// OutcomeKind is how a call came out.
type OutcomeKind string

// How calls come out. Decoders give all but the last three, which the runner knows.
const (
	OK         OutcomeKind = "ok"
	Incomplete OutcomeKind = "incomplete" // it ended without an answer, or without saying that it is one
	MaxTurns   OutcomeKind = protocol.OutcomeMaxTurns
	Budget     OutcomeKind = protocol.OutcomeMaxCost
	Refusal    OutcomeKind = "refusal" // the model declines
	Failed     OutcomeKind = "error"

	Timeout     OutcomeKind = "timeout"
	Interrupted OutcomeKind = "interrupted" // by us, or by its user
	SessionLost OutcomeKind = "session_lost"
)

// resetsAt is when the limit at which a call failed is reset; the zero time: nobody knows.
func (o Outcome) resetsAt(now time.Time) time.Time {
	if !o.ResetsAt.IsZero() {
		return o.ResetsAt
	}
	return resettime.In(o.Message, now)
}

// Why calls fail besides what package failure knows.
const (
	NotInstalled errorkind.Kind = "not_installed"
	TooOld       errorkind.Kind = "too_old"
	Crashed      errorkind.Kind = "crashed"
)

// Fail is the outcome of a call that failed with a message. An empty message is
// replaced by the end of what the program wrote.
func Fail(kind errorkind.Kind, message string, e Exit) Outcome {
	if strings.TrimSpace(message) == "" {
		message = e.Said()
	}
	return Outcome{Kind: Failed, Error: kind, Message: message}
}

// Unfinished is the outcome of a program that ended without saying how it went: an error found
// in its messages, a crash, or just an early end.
func (e Exit) Unfinished() Outcome {
	said := e.Said()
	kind := errorkind.OfText(said)
	switch {
	case e.Stopped, e.Code == 0 && kind == errorkind.Unknown:
		return Outcome{Kind: Incomplete, Message: said}
	case kind != errorkind.Unknown:
		return Fail(kind, said, e)
	case e.Signal != "":
		return Fail(Crashed, strings.TrimSpace("it was ended by a signal: "+e.Signal+"\n"+said), e)
	}
	return Fail(Crashed, strings.TrimSpace(fmt.Sprintf("exit status %d\n%s", e.Code, said)), e)
}

// Said is what the program wrote besides its lines, for a message; "" if nothing.
func (e Exit) Said() string {
	var said []string
	for _, text := range []string{e.Stderr, e.Noise} {
		if text = strings.TrimSpace(text); text != "" {
			said = append(said, text)
		}
	}
	return strings.Join(said, "\n")
}

// ErrCannotFork is what [Adapter.Command] returns for a copy of a session that the
// installed version cannot make: the step then starts over with the whole prompt.
var ErrCannotFork = errors.New("this version cannot copy a session")

// Error is why a program could not do a step's work, for a person.
type Error struct {
	Program string
	Kind    errorkind.Kind
	Text    string
	Hint    string   // what to type; "" if nothing helps
	Held    []string // more hints, about the confinement
	Logs    string   // where both streams are kept; "" if nowhere
}

// Error implements error: what and why.
func (e *Error) Error() string { return e.Text }

// OfMachine implements what [protocol.OfMachine] asks for.
func (e *Error) OfMachine() bool { return e.Kind == NotInstalled || e.Kind == errorkind.Auth }

// Hints are what to do about it.
func (e *Error) Hints() []string {
	var hints []string
	if e.Hint != "" {
		hints = append(hints, e.Hint)
	}
	hints = append(hints, e.Held...)
	if e.Logs != "" {
		hints = append(hints, "all that it printed is in "+e.Logs)
	}
	return hints
}

// maxShown is how much of what a program wrote is part of an error.
const maxShown = 2000

// Excerpt is the end of a text, in which programs say why they end.
func Excerpt(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > maxShown {
		s = "…" + strings.ToValidUTF8(s[len(s)-maxShown:], "")
	}
	return s
}

// plainID is what the id of a session may look like. It comes from what a program
// prints, and so perhaps from its model, or from a thread of somebody else's, and it
// becomes an argument: it must be no option, no path and no text with marks in it.
var plainID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._:@=+~-]{0,199}$`)

// isPlain reports whether an id, or a mark in a session, may stand in a command line.
// A program that is talked to gets none there.
func (a Adapter) isPlain(id string) bool { return a.Transport != nil || plainID().MatchString(id) }

// plain takes the ids from an outcome that are none.
func (r *runner) plain(out *tried) {
	if out.Session != "" && !r.adapter.isPlain(out.Session) {
		r.note("the id of its session is not plain, so the session is not gone on with: %q", clipped(out.Session))
		out.Session = ""
	}
	if out.Mark != "" && !r.adapter.isPlain(out.Mark) {
		out.Mark = ""
	}
}

// clipped is a text of somebody's for a note.
func clipped(s string) string { return s[:min(len(s), 60)] }
