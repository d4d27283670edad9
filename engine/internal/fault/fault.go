// Package fault adds codes to errors and classifies them.
package fault

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/proc"
)

// New returns an error with a code.
func New(code protocol.Code, format string, args ...any) *protocol.Error {
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// Of converts an error to a *protocol.Error with a code. Call it where an error leaves a package.
func Of(err error) *protocol.Error {
	var known *protocol.Error
	if errors.As(err, &known) {
		if known.Message == err.Error() {
			return known
		}
		return &protocol.Error{Code: known.Code, Message: err.Error(), Hints: known.Hints, Reasons: known.Reasons, Err: err}
	}
	return &protocol.Error{Code: codeOf(err), Message: err.Error(), Err: err}
}

// Resume returns the reason for a thread that stopped with an error code and can be resumed at once.
func Resume(thread string, code protocol.Code) []protocol.Reason {
	again := protocol.AgainResume
	if code == protocol.CodeLimit {
		again = protocol.AgainRaise
	}
	return []protocol.Reason{protocol.Why("last-try-failed", "thread", thread, "again", again)}
}

// Step converts an error to the form that outputs contain.
func Step(err error) *protocol.StepError {
	e := Of(err)
	return &protocol.StepError{Message: e.Message, Code: e.Code, Hint: strings.Join(e.Hints, "\n"), Reasons: e.Reasons}
}

// Coded applies [Of] to a named result, for use with defer.
func Coded(err *error) { *err = OrNil(*err) }

// Is reports whether an error has a code.
func Is(err error, code protocol.Code) bool { return err != nil && Of(err).Code == code }

// OrNil is like [Of], but returns nil if err is nil.
func OrNil(err error) error {
	if err == nil {
		return nil
	}
	return Of(err)
}

func codeOf(err error) protocol.Code {
	signal, signaled := errors.AsType[*proc.SignalError](err)
	switch {
	case signaled:
		return signal.Code()
	case is[*agentproc.TimeoutError](err), errors.Is(err, context.DeadlineExceeded):
		return protocol.CodeTimeout
	case errors.Is(err, context.Canceled):
		return protocol.CodeInterrupted
	case is[*workflow.Problems](err):
		return protocol.CodeInvalid
	case IsAgentFailure(err):
		return protocol.CodeAgent
	case IsRedacted(err):
		return protocol.CodeRedacted
	case IsDamage(err):
		return protocol.CodeCorrupt
	case is[*moderator.RouteError](err), is[*moderator.EvalError](err):
		return protocol.CodeInvalid
	case is[*heads.ConflictError](err):
		return protocol.CodeLocked
	case errors.Is(err, heads.ErrNoThread):
		return protocol.CodeNotFound
	}
	return protocol.CodeFailed
}

// IsSignal reports whether this process was asked to end, by a signal or by its caller.
func IsSignal(err error) bool {
	return is[*proc.SignalError](err) || errors.Is(err, context.Canceled)
}

// IsAgentFailure reports whether the agent could not be run, failed, or gave an invalid answer.
func IsAgentFailure(err error) bool {
	return is[*agentproc.NotFoundError](err) || is[*agentproc.ExitError](err) || is[*agentproc.ResultError](err)
}

// IsRedacted reports whether the content of a node was removed on purpose.
func IsRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

// IsDamage reports whether a required node is missing, damaged, redacted, or of the wrong kind.
func IsDamage(err error) bool {
	return IsRedacted(err) || errors.Is(err, cas.ErrNotFound) || is[*cas.CorruptError](err) ||
		is[*cas.CollisionError](err) || is[*cas.TypeError](err) || is[*cas.SchemaError](err) ||
		is[*snapshot.DamagedError](err)
}

// is reports whether the chain of err contains an error of type E.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Ended converts the error of a step. If a signal ended the step, it uses the signal's code.
func Ended(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return Of(err)
}

// Near returns the facts near, near2 and near3, which hold suggested names.
func Near(names []string) []string {
	var facts []string
	for i, name := range names {
		facts = append(facts, []string{"near", "near2", "near3"}[i], name)
	}
	return facts
}
