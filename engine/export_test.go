package engine

import (
	"context"

	"github.com/united-workforce/uwf/protocol"
)

// Step makes one step of a thread. The output is valid even if the error is not nil: it is the thread's state.
func (e *Engine) Step(ctx context.Context, thread string, o StepOptions) (protocol.StepOutput, error) {
	return e.once(ctx, thread, Work{StepOptions: o})
}

func (e *Engine) once(ctx context.Context, thread string, w Work) (protocol.StepOutput, error) {
	w.Steps = 1
	outs, err := e.Do(ctx, thread, w)
	if len(outs) > 0 {
		return outs[0], err
	}
	// A second error adds nothing to the first.
	out, _ := e.Reader.Show(context.WithoutCancel(ctx), thread)
	return out, err
}
