// Package threadfiles implements what people do with the files of threads between steps: apply
// a thread's result to a branch of theirs, redact a path everywhere it is kept, list
// worktrees, and remove them with or before their threads. Package workspace keeps the files.
package threadfiles

import (
	"context"

	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Files are those of all threads of a home. [Engine.ThreadFiles] makes one.
type Files struct {
	workspace.Keeper
	// Lock takes a thread's lock: nobody steps or moves it until the lock is released.
	Lock func(ctx context.Context, thread string) (Locked, error)
	// Show tells how an active thread stands.
	Show func(ctx context.Context, thread string) (protocol.StepOutput, error)
}

// Locked is a thread under its lock.
type Locked struct {
	workspace.Thread
	Release func()
}
