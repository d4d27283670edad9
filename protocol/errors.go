package protocol

import (
	"errors"
	"slices"
	"syscall"
)

// Code tells what kind of failure an error is. Scripts see it as the exit
// status and, with JSON output, in {"error":{"code",…}}.
type Code string

// The codes. New ones may be added; none changes its meaning.
const (
	CodeFailed             Code = "failed"              // 1: anything without a code of its own
	CodeRedacted           Code = "redacted"            // 1: the content was taken away on purpose
	CodeHeadMoved          Code = "head-moved"          // 1: a thread is not where --if-head says
	CodeDiverged           Code = "diverged"            // 1: a thread has gone on here and at a remote, each its own way
	CodeUsage              Code = "usage"               // 2: the command line is wrong
	CodeNotFound           Code = "not_found"           // 3: a thing named on the command line does not exist
	CodeInvalid            Code = "invalid"             // 4: a file or value has wrong content
	CodeAgent              Code = "agent"               // 5: the agent failed
	CodeSuspended          Code = "suspended"           // 6: ended suspended
	CodeLimit              Code = "limit"               // 6: ended suspended, at a limit of what a run may cost
	CodeCorrupt            Code = "corrupt"             // 7: a node is missing, damaged or not what it should be
	CodeUnsupportedVersion Code = "unsupported-version" // 7: a newer program made it, and this one must not touch it
	CodeWorkflow           Code = "workflow"            // 8: the thread has ended at $FAIL
	CodeOutputFailed       Code = "output-failed"       // 74: it is done, but the result could not be written to stdout
	CodeLocked             Code = "locked"              // 75: someone else is at it
	CodeTimeout            Code = "timeout"             // 124
	CodeHangup             Code = "hangup"              // 129: SIGHUP, the terminal is gone
	CodeInterrupted        Code = "interrupted"         // 130: SIGINT
	CodeTerminated         Code = "terminated"          // 143: SIGTERM
)

// ExitCode is the exit status that stands for c.
func (c Code) ExitCode() int {
	switch c {
	case "":
		return 0
	case CodeUsage:
		return 2
	case CodeNotFound:
		return 3
	case CodeInvalid:
		return 4
	case CodeAgent:
		return 5
	case CodeSuspended, CodeLimit:
		return 6
	case CodeCorrupt, CodeUnsupportedVersion:
		return 7
	case CodeWorkflow:
		return 8
	case CodeOutputFailed:
		return 74
	case CodeLocked:
		return 75
	case CodeTimeout:
		return 124
	case CodeHangup:
		return 129
	case CodeInterrupted:
		return 130
	case CodeTerminated:
		return 143
	}
	return 1
}

// Error is a failure with a code and why, or what to type next. Message stands alone: it repeats
// the text of Err as far as a user needs it.
type Error struct {
	Code    Code
	Message string
	Hints   []string // each a command, or a sentence that ends in one
	// Reasons are those of the error and of what has led to it, the first cause first. A front end
	// has a table of what a person can do about each.
	Reasons []Reason
	Err     error // the cause, for errors.Is and errors.As; may be nil
	// Machine: the fault is this machine's, see [OfMachine].
	Machine bool
}

// Reason is a name in kebab-case for why something is so, and the facts that a person needs to do
// something about it, such as an id or a directory: never a command.
type Reason struct {
	Name string            `json:"name"`
	Data map[string]string `json:"data,omitempty"`
}

// Why returns a reason with facts: pairs of a key and a value. Those without a value are left out.
func Why(name string, facts ...string) Reason {
	r := Reason{Name: name, Data: map[string]string{}}
	for pair := range slices.Chunk(facts, 2) {
		if pair[1] != "" {
			r.Data[pair[0]] = pair[1]
		}
	}
	return r
}

// Values of the fact "again" of a reason: the request that repeats one, or continues where it has stopped.
const (
	AgainStep   = "step"   // the next step
	AgainResume = "resume" // to the end, or until a person is needed
	AgainRaise  = "raise"  // the same, and the limits are granted again
	AgainAnswer = "answer" // the same, with a person's words
	AgainForm   = "form"   // the data of a role that a person plays
	AgainRetry  = "retry"  // the last step, with other instructions
)

// Because adds the reason that [Why] returns.
func (e *Error) Because(name string, facts ...string) *Error {
	e.Reasons = append(e.Reasons, Why(name, facts...))
	return e
}

// Error implements error.
func (e *Error) Error() string { return e.Message }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// OfMachine reports whether an error is the fault of the machine, so that another one may succeed: a
// program, a login, a sandbox or space is missing, or the config is wrong. An error that knows it of
// itself has the method OfMachine.
func OfMachine(err error) bool {
	for _, full := range []error{syscall.ENOSPC, syscall.EDQUOT, syscall.EROFS, syscall.EMFILE, syscall.ENFILE,
		syscall.ENOMEM} {
		if errors.Is(err, full) {
			return true
		}
	}
	var e interface{ OfMachine() bool }
	return errors.As(err, &e) && e.OfMachine()
}

// OfMachine implements what [OfMachine] asks for.
func (e *Error) OfMachine() bool { return e.Machine || e.Err != nil && OfMachine(e.Err) }

// Is matches an *Error that has only a code: errors.Is(err, &Error{Code: c}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Err == nil && t.Code == e.Code
}
