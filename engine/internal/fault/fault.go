// Package fault gives what goes wrong its code.
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

// Of gives an error from below its code, at the edge of a package.
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

// Resume returns the reason of a thread that waits because of an error of a code: it can be resumed at once.
func Resume(thread string, code protocol.Code) []protocol.Reason {
	again := protocol.AgainResume
	if code == protocol.CodeLimit {
		again = protocol.AgainRaise
	}
	return []protocol.Reason{protocol.Why("last-try-failed", "thread", thread, "again", again)}
}

// Step is an error as a part of a result.
func Step(err error) *protocol.StepError {
	e := Of(err)
	return &protocol.StepError{Message: e.Message, Code: e.Code, Hint: strings.Join(e.Hints, "\n"), Reasons: e.Reasons}
}

// Coded is [Of] for the result of a function that defers it.
func Coded(err *error) { *err = OrNil(*err) }

// Is reports whether an error has a code.
func Is(err error, code protocol.Code) bool { return err != nil && Of(err).Code == code }

// OrNil is [Of], and nil for none.
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
	case is[*moderator.RouteError](err), is[*moderator.TemplateError](err), is[*moderator.ConditionError](err):
		return protocol.CodeInvalid
	case is[*heads.ConflictError](err):
		return protocol.CodeLocked
	case errors.Is(err, heads.ErrNoThread):
		return protocol.CodeNotFound
	}
	return protocol.CodeFailed
}

// IsSignal: this process was asked to end, by a signal or by its caller.
func IsSignal(err error) bool {
	return is[*proc.SignalError](err) || errors.Is(err, context.Canceled)
}

// IsAgentFailure: the agent could not be run, failed, or answered nonsense.
func IsAgentFailure(err error) bool {
	return is[*agentproc.NotFoundError](err) || is[*agentproc.ExitError](err) || is[*agentproc.ResultError](err)
}

// IsRedacted: the content of a node was taken away on purpose.
func IsRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

// IsDamage: a node that must be there is missing, damaged, redacted, or not what
// the node that names it says.
func IsDamage(err error) bool {
	return IsRedacted(err) || errors.Is(err, cas.ErrNotFound) || is[*cas.CorruptError](err) ||
		is[*cas.CollisionError](err) || is[*cas.TypeError](err) || is[*cas.SchemaError](err) ||
		is[*snapshot.DamagedError](err)
}

// is reports whether an error of a type is in a chain.
func is[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// Ended gives the error of a step its code: that of the signal, if one ended it.
func Ended(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) && context.Cause(ctx) != nil {
		err = context.Cause(ctx)
	}
	return Of(err)
}

// Near are the facts near, near2 and near3: names that may have been meant.
func Near(names []string) []string {
	var facts []string
	for i, name := range names {
		facts = append(facts, []string{"near", "near2", "near3"}[i], name)
	}
	return facts
}
