package engine

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/engine/internal/trust"
	"github.com/united-workforce/uwf/protocol"
)

// UntrustedError means that a workflow with commands, or the prompts of a thread, have not been confirmed. A
// front end asks the user whether the Commands of the workflow Name may run, now and later. Why describes the
// origin; Thread is set if the question concerns one thread. To agree, call [Engine.Confirm] and repeat the
// refused call with the same arguments.
type UntrustedError = trust.UntrustedError

// Origins returns the judge of what may run from other origins.
func (e *Engine) Origins() trust.Judge { return trust.Judge{Reader: &e.Reader} }

// Confirm records that the user has agreed to an [UntrustedError]. Errors are *protocol.Error.
func (e *Engine) Confirm(ctx context.Context, u *UntrustedError) error {
	if u.Thread != "" {
		return e.Origins().TrustThread(ctx, u.Thread)
	}
	return e.Origins().Trust(ctx, u.Workflow)
}

// Ask asks a user whether commands may run.
type Ask func(context.Context, *UntrustedError) (yes bool)

// Trusting calls do, and repeats it while the user confirms the commands that stopped it. It never asks the
// same question twice.
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

// DoTrusting is like [Engine.Do], but continues after the user has confirmed commands.
func (e *Engine) DoTrusting(ctx context.Context, thread string, w Work, ask Ask) ([]protocol.StepOutput, error) {
	var outs []protocol.StepOutput
	left := w
	err := e.Trusting(ctx, ask, func() error {
		made, err := e.Do(ctx, thread, left)
		outs = append(outs, made...)
		if len(made) > 0 {
			left.Do, left.Cwd, left.Expect, left.Answer, left.Fresh, left.KeepFiles = DoStep, "", "", nil, false, false
			if w.Steps != UntilEnd {
				left.Steps = max(w.Steps-len(outs), 1)
			}
		}
		return err
	})
	return outs, err
}
