package oscommand

import (
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// OfAgent reports whether a variable is only for agents, which make the step themselves.
func OfAgent(key string) bool {
	switch key {
	case protocol.EnvHead, protocol.EnvRunDir, protocol.EnvPrompt, protocol.EnvLimitBase, protocol.EnvAgent, protocol.EnvSnapshot, protocol.EnvRetries:
		return true
	}
	return false
}

// Explain adds to the failure of the command of a role what to do about it; again tries it again.
func Explain(err error, role, again string, dir runfiles.Dir) error {
	var missing *agentproc.NotFoundError
	var gave *NoAnswerError
	var flood *agentproc.FloodError
	switch {
	case errors.As(err, &flood):
		return fault.Hinted(fault.New(protocol.CodeAgent, "role %q: %v", role, flood),
			"to retry: "+again, "let it write that to a file of its own; what it printed is in "+string(dir))
	case errors.As(err, &missing):
		return fault.Hinted(CannotStart(role, missing), "to retry: "+again)
	case errors.As(err, &gave):
		e := &protocol.Error{Code: protocol.CodeAgent, Message: fmt.Sprintf("role %q: %v", role, err), Err: err}
		return fault.Hinted(e, "to retry: "+again, "what it printed is in "+string(dir))
	}
	return err
}
