package protocol

import (
	"errors"
	"slices"
	"syscall"
)

// Code classifies an error. Scripts see it as the exit status and, with JSON output, in {"error":{"code",…}}.
type Code string

// Error codes. New ones can be added, but existing ones never change their meaning.
const (
	CodeFailed             Code = "failed"              // 1: any other error
	CodeRedacted           Code = "redacted"            // 1: the content was removed on purpose
	CodeHeadMoved          Code = "head-moved"          // 1: the thread's head is not the one in --if-head
	CodeDiverged           Code = "diverged"            // 1: a thread has moved both here and at a remote
	CodeGone               Code = "gone"                // 1: the thread was removed from the remote
	CodeUsage              Code = "usage"               // 2: the command line is wrong
	CodeNotFound           Code = "not_found"           // 3: something on the command line does not exist
	CodeInvalid            Code = "invalid"             // 4: a file or value has invalid content
	CodeAgent              Code = "agent"               // 5: the agent failed
	CodeSuspended          Code = "suspended"           // 6: ended suspended
	CodeLimit              Code = "limit"               // 6: ended suspended, at a cost limit
	CodeCorrupt            Code = "corrupt"             // 7: a node is missing, damaged or of the wrong kind
	CodeUnsupportedVersion Code = "unsupported-version" // 7: created by a newer program, so this one must not change it
	CodeWorkflow           Code = "workflow"            // 8: the thread has ended at $FAIL
	CodeOutputFailed       Code = "output-failed"       // 74: done, but the result could not be written to stdout
	CodeLocked             Code = "locked"              // 75: another process is working on it
	CodeTimeout            Code = "timeout"             // 124
	CodeHangup             Code = "hangup"              // 129: SIGHUP, the terminal was closed
	CodeInterrupted        Code = "interrupted"         // 130: SIGINT
	CodeTerminated         Code = "terminated"          // 143: SIGTERM
)

// ExitCode returns the exit status for c.
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

// Error is an error with a code and reasons or hints. Message is complete by itself: it includes what a user
// needs from Err.
type Error struct {
	Code    Code
	Message string
	Hints   []string // each is a command, or a sentence that ends in one
	// Reasons are the reasons of the error and of its causes, root cause first. A front end maps each to a
	// hint.
	Reasons []Reason
	Err     error // cause, for errors.Is and errors.As; can be nil
	// Machine means that this machine is at fault, see [OfMachine].
	Machine bool
}

// Reason explains an error: a name in kebab-case, and the facts that a user needs for a remedy, such as an ID
// or a directory. It never contains a command.
type Reason struct {
	Name string            `json:"name"`
	Data map[string]string `json:"data,omitempty"`
}

// Why returns a reason with facts, which are pairs of key and value. It omits facts with an empty value.
func Why(name string, facts ...string) Reason {
	r := Reason{Name: name, Data: map[string]string{}}
	for pair := range slices.Chunk(facts, 2) {
		if pair[1] != "" {
			r.Data[pair[0]] = pair[1]
		}
	}
	return r
}

// Values of a reason's fact "again": the request that repeats or continues the failed one.
const (
	AgainStep   = "step"   // make the next step
	AgainResume = "resume" // run to the end, or until a person is needed
	AgainRaise  = "raise"  // raise the limits and run to the end
	AgainAnswer = "answer" // run to the end with a person's prompt
	AgainForm   = "form"   // give the data of a role that a person plays
	AgainRetry  = "retry"  // repeat the last step with other instructions
)

// Because adds a reason, as returned by [Why], and returns e.
func (e *Error) Because(name string, facts ...string) *Error {
	e.Reasons = append(e.Reasons, Why(name, facts...))
	return e
}

func (e *Error) Error() string { return e.Message }

func (e *Error) Unwrap() error { return e.Err }

// OfMachine reports whether the machine is at fault, so that another one may succeed: a program, a login, a
// sandbox or disk space is missing, or the config is wrong. Errors report this with a method OfMachine()
// bool.
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

// OfMachine implements the interface of the function [OfMachine].
func (e *Error) OfMachine() bool { return e.Machine || e.Err != nil && OfMachine(e.Err) }

// Is reports whether target is an *Error with the same code and nothing else, for errors.Is(err, &Error{Code:
// c}).
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Message == "" && t.Err == nil && t.Code == e.Code
}
