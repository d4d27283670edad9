package cliagent

import (
	"time"

	"github.com/united-workforce/uwf/utilagent/errorkind"
)

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

// Hearer is a [Decoder] of a program that can be told something while it works: of one
// that was started with [Invocation.Open], and says so by an event [Heard].
type Hearer interface {
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
