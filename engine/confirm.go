package engine

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/protocol"
)

// UntrustedError means that a workflow with commands, or the words of a thread, have not been confirmed. It is
// the question that a front end asks a person: may these Commands of the workflow Name run, now and later? Why
// says where it comes from; Thread is set if it is about one thread. [Engine.Confirm] says yes; then what was
// refused is done once more, with the same arguments.
type UntrustedError = trust.UntrustedError

// Origins decides what of elsewhere may run here.
func (e *Engine) Origins() trust.Judge { return trust.Judge{Reader: &e.Reader} }

// Confirm is the answer yes to an [UntrustedError]. Errors are *protocol.Error.
func (e *Engine) Confirm(ctx context.Context, u *UntrustedError) error {
	if u.Thread != "" {
		return e.Origins().TrustThread(ctx, u.Thread)
	}
	return e.Origins().Trust(ctx, u.Workflow)
}

// Ask asks a person whether commands may run.
type Ask func(context.Context, *UntrustedError) (yes bool)

// Trusting calls do, and again as long as the person confirms what has stopped it. Nothing is asked twice.
func (e *Engine) Trusting(ctx context.Context, ask Ask, do func() error) error {
	confirmed := ""
	for {
		err := do()
		var untrusted *UntrustedError
		if !errors.As(err, &untrusted) || untrusted.Error() == confirmed || !ask(ctx, untrusted) {
			return err
		}
		confirmed = untrusted.Error()
		if err := e.Confirm(ctx, untrusted); err != nil {
			return err
		}
	}
}

// DoTrusting is [Engine.Do], and continues once the person has confirmed commands that it has come to.
func (e *Engine) DoTrusting(ctx context.Context, thread string, w Work, ask Ask) ([]protocol.StepOutput, error) {
	var outs []protocol.StepOutput
	left := w
	err := e.Trusting(ctx, ask, func() error {
		made, err := e.Do(ctx, thread, left)
		outs = append(outs, made...)
		if len(made) > 0 {
			left.Do, left.Cwd, left.Expect = DoStep, "", ""
			if w.Steps != UntilEnd {
				left.Steps = max(w.Steps-len(outs), 1)
			}
		}
		return err
	})
	return outs, err
}
