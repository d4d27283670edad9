package oscommand

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
)

// ofJSON takes the one JSON value that a command has printed.
func ofJSON(ctx context.Context, data []byte, r extract.Role) (extract.Output, error) {
	data = bytes.TrimSpace(data)
	value, err := exactjson.Parse(data)
	if err != nil {
		return extract.Output{}, &extract.InvalidError{Reason: "it is not one JSON value: " + err.Error()}
	}
	return extract.Value(ctx, value, r)
}

// NoAnswerError means that a command gave no answer.
type NoAnswerError struct {
	Argv []string
	Ran  agentproc.Outcome
	Why  string // "": it could not be run to its end
	Said string
}

// Error implements error.
func (e *NoAnswerError) Error() string {
	text := fmt.Sprintf("command %s ", plaintext.Word(e.Argv[0]))
	switch {
	case e.Why != "":
		text += fmt.Sprintf("ended with exit status %d, but %s", e.Ran.ExitCode, e.Why)
	case e.Ran.Signal != "":
		text += "was ended by signal: " + e.Ran.Signal
	case e.Ran.ExitCode == NotFound:
		text += "ended with exit status 127: a command was not found"
	default:
		text += "ended with exit status 126: a command could not be started"
	}
	if e.Said != "" {
		text += "\nwhat it printed ends:\n" + e.Said
	}
	return text
}

// CannotStart says why the program of a role that is a command cannot be started.
func CannotStart(role string, missing *agentproc.NotFoundError) *protocol.Error {
	program := missing.Command
	err := fault.New(protocol.CodeAgent, "role %q: %s", role, strings.Replace(missing.Error(), "agent command", "command", 1))
	err.Err = missing
	var inside *proc.InsideError
	switch {
	case errors.As(missing, &inside):
		return fault.Hinted(err, fmt.Sprintf("run: [%s, …] names a program of the workspace", plaintext.Word("./"+filepath.Base(program))))
	case missing.Absent() && filepath.Base(program) == program:
		return fault.Hinted(err, "install it, or put it on PATH")
	}
	return err
}
