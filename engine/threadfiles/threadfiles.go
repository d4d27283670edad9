// Package threadfiles is what people do with the files of threads between their steps: bring
// what a thread has made to a branch of theirs, take a path out of all that is kept, look at
// worktrees, and remove them with their threads or before. How the files are kept is package
// workspace's.
package threadfiles

import (
	"context"

	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Files are those of all threads of a home. [Engine.ThreadFiles] makes one.
type Files struct {
	workspace.Keeper
	// Lock takes a thread's lock: nobody steps it, or brings it elsewhere, until it is released.
	Lock func(ctx context.Context, thread string) (Locked, error)
	// Show tells how an active thread stands.
	Show func(ctx context.Context, thread string) (protocol.StepOutput, error)
}

// Locked is a thread under its lock.
type Locked struct {
	workspace.Thread
	Release func()
}
