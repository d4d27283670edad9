package engine

import (
	"context"

	"github.com/united-workforce/uwf/engine/fault"
)

// Exclusive keeps a thread as it is until release is called, so that somebody else
// than a step may change it: nobody steps, resumes or ends it. It fails at once
// with code locked if a step is running, also one whose engine is gone.
// Errors are *protocol.Error.
func (e *Engine) Exclusive(ctx context.Context, thread string) (release func(), err error) {
	h, err := e.lock(ctx, thread)
	if err != nil {
		return nil, fault.Of(err)
	}
	if _, err := e.lastRun(ctx, h); err != nil {
		h.release()
		return nil, fault.Of(err)
	}
	return h.release, nil
}
