package cliagent

import (
	"time"

	"github.com/united-workforce/uwf/util/secret"
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
