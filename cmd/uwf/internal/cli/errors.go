package cli

import (
	"errors"
	"os"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/cmd/uwf/internal/engine"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

func isRedacted(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted
}

func usageError(message string, hints ...string) error { return cmdline.UsageError(message, hints...) }

func notFound(message string, hints ...string) error { return cmdline.NotFound(message, hints...) }

func invalid(message string, hints ...string) error { return cmdline.Invalid(message, hints...) }

// classify gives every error a code. What the layers below return as a typed
// error is translated here, once.
func classify(err error) *protocol.Error {
	var coded *protocol.Error
	if errors.As(err, &coded) {
		if coded.Message == err.Error() {
			return coded
		}
		return &protocol.Error{Code: coded.Code, Message: err.Error(), Hints: coded.Hints, Err: err}
	}
	out := &protocol.Error{Code: protocol.CodeFailed, Message: err.Error(), Err: err}
	var (
		collected *gc.DamagedError
		corrupt   *cas.CorruptError
		collision *cas.CollisionError
		kind      *cas.TypeError
		problems  *workflow.Problems
		conflict  *index.ConflictError
		signal    *engine.SignalError
	)
	switch {
	case errors.As(err, &signal):
		out.Code = protocol.CodeTerminated
		if signal.Signal == os.Interrupt {
			out.Code = protocol.CodeInterrupted
		}
	case errors.As(err, &collected), isRedacted(err):
		return ocascli.Classify(err)
	case errors.As(err, &corrupt):
		out.Code = protocol.CodeCorrupt
		out.Hints = []string{"the node is damaged on disk: restore it from a backup, or fork the thread from a step before it"}
	case errors.As(err, &collision), errors.Is(err, cas.ErrNotFound):
		out.Code = protocol.CodeCorrupt
	case errors.As(err, &kind):
		out.Code = protocol.CodeInvalid
	case errors.As(err, &problems):
		out.Code = protocol.CodeInvalid
	case errors.As(err, &conflict):
		out.Code = protocol.CodeLocked
	case errors.Is(err, index.ErrNoThread), errors.Is(err, index.ErrNoWorkflow):
		out.Code = protocol.CodeNotFound
	default:
		return ocascli.Classify(err)
	}
	return out
}
