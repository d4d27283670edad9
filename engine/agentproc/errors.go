package agentproc

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// NotFoundError means that the command is not on PATH, not executable, or cannot be started.
type NotFoundError struct {
	Command string
	Err     error
}

func (e *NotFoundError) Error() string {
	var box *proc.BoxError
	switch {
	case errors.As(e.Err, &box): // a file that its setup lacks is not the command
		return fmt.Sprintf("cannot start agent command %q: its sandbox cannot be set up: %v", e.Command, box)
	case errors.Is(e.Err, exec.ErrNotFound):
		return fmt.Sprintf("agent command %q is not on PATH", e.Command)
	case errors.Is(e.Err, fs.ErrNotExist):
		return fmt.Sprintf("agent command %q does not exist", e.Command)
	}
	return fmt.Sprintf("cannot start agent command %q: %v", e.Command, reason(e.Err))
}

// Absent reports whether the command doesn't exist.
func (e *NotFoundError) Absent() bool {
	return !errors.As(e.Err, new(*proc.BoxError)) && (errors.Is(e.Err, exec.ErrNotFound) || errors.Is(e.Err, fs.ErrNotExist))
}

// OfMachine implements the interface of [protocol.OfMachine]. An argument list that is too long fails on
// every machine.
func (e *NotFoundError) OfMachine() bool { return !errors.Is(e.Err, syscall.E2BIG) }

func (e *NotFoundError) Unwrap() error { return e.Err }

// reason returns the innermost error of an operating system error, since our message already contains the
// command.
func reason(err error) error {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		return path.Err
	}
	if lookup, ok := errors.AsType[*exec.Error](err); ok {
		return lookup.Err
	}
	return err
}

// ExitError means that the agent exited with a failure, or reported one as its result.
type ExitError struct {
	Outcome Outcome
	Command string
}

// Error describes how the agent ended and quotes it: the error of its result if there is one, else the end of
// its stderr. The agent's advice is quoted as such, because an error's hints are only ours.
func (e *ExitError) Error() string {
	text := e.Brief()
	reason := strings.TrimSpace(cmp.Or(e.Outcome.Result.Error, e.Outcome.Stderr))
	switch {
	case reason == "":
		text += " and printed nothing on stderr"
	case strings.Contains(reason, "\n"):
		text += ":\n" + reason
	default:
		text += ": " + reason
	}
	for _, hint := range e.Outcome.Result.Hints {
		text += "\nagent says: " + hint
	}
	return text
}

// OfMachine implements the interface of [protocol.OfMachine], as the agent reported.
func (e *ExitError) OfMachine() bool { return e.Outcome.Result.Kind == protocol.FailedMachine }

// Brief describes how the agent ended, without quoting it.
func (e *ExitError) Brief() string {
	switch {
	case e.Outcome.Signal != "":
		return fmt.Sprintf("agent %s failed (ended by signal: %s)", e.Command, e.Outcome.Signal)
	case e.Outcome.ExitCode != 0:
		return fmt.Sprintf("agent %s failed (exit status %d)", e.Command, e.Outcome.ExitCode)
	}
	return fmt.Sprintf("agent %s failed", e.Command)
}

// ResultError means that stdout doesn't end with a result.
type ResultError struct {
	Line   string // the last line, shortened and cleaned; "" if there is none
	Reason string
}

func (e *ResultError) Error() string {
	if e.Line == "" {
		return "the agent did not print a step result: " + e.Reason
	}
	return fmt.Sprintf("the agent did not print a step result: its last line %s: %s", e.Reason, e.Line)
}

// TimeoutError means that the agent was stopped because it exceeded its timeout.
type TimeoutError struct {
	After time.Duration
	Plain bool // it was a plain program
}

func (e *TimeoutError) Error() string {
	who := "agent"
	if e.Plain {
		who = "command"
	}
	return fmt.Sprintf("the %s was stopped after its timeout of %s", who, e.After)
}
