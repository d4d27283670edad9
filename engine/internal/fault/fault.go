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
	var (
		signal   *proc.SignalError
		timeout  *agentproc.TimeoutError
		route    *moderator.RouteError
		template *moderator.TemplateError
		failed   *moderator.ConditionError
		conflict *heads.ConflictError
	)
	switch {
	case errors.As(err, &signal):
		return signal.Code()
	case errors.As(err, &timeout):
		return protocol.CodeTimeout
	case IsAgentFailure(err):
		return protocol.CodeAgent
	case IsRedacted(err):
		return protocol.CodeRedacted
	case IsDamage(err):
		return protocol.CodeCorrupt
	case errors.As(err, &route), errors.As(err, &template), errors.As(err, &failed):
		return protocol.CodeInvalid
	case errors.As(err, &conflict):
		return protocol.CodeLocked
	case errors.Is(err, heads.ErrNoThread):
		return protocol.CodeNotFound
	}
	return protocol.CodeFailed
}

// IsSignal: this process was asked to end, by a signal or by its caller.
func IsSignal(err error) bool {
	var signal *proc.SignalError
	return errors.As(err, &signal) || errors.Is(err, context.Canceled)
}

// IsAgentFailure: the agent could not be run, failed, or answered nonsense.
func IsAgentFailure(err error) bool {
	var (
		missing *agentproc.NotFoundError
		exit    *agentproc.ExitError
		result  *agentproc.ResultError
	)
	return errors.As(err, &missing) || errors.As(err, &exit) || errors.As(err, &result)
}

// IsRedacted: the content of a node was taken away on purpose.
func IsRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

// IsDamage: a node that must be there is missing, damaged, redacted, or not what
// the node that names it says.
func IsDamage(err error) bool {
	var (
		corrupt   *cas.CorruptError
		collision *cas.CollisionError
		kind      *cas.TypeError
		schema    *cas.SchemaError
	)
	return IsRedacted(err) || errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) ||
		errors.As(err, &collision) || errors.As(err, &kind) || errors.As(err, &schema) || errors.As(err,
		new(*snapshot.DamagedError))
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
