// Package locker provides locks that allow only one process at a time to work on a thread.
package locker

import (
	"context"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
)

// ErrLocked means that another process is working on the thread.
var ErrLocked = durable.ErrLocked

// Locker locks threads. A lock is released when its holder ends, for whatever reason. [Files] is the default
// implementation; package lockertest tests others.
type Locker interface {
	// Lock locks a thread. It waits until ctx ends; then the error is [ErrLocked].
	Lock(ctx context.Context, thread string) (Lock, error)
	// Held reports whether a thread is locked.
	Held(ctx context.Context, thread string) bool
	// Holder returns the note of the lock's current or last holder. It is used in messages, and to find
	// agents whose engine was killed.
	Holder(ctx context.Context, thread string) (Holder, error)
}

// Lock is a held lock of a thread.
type Lock interface {
	// Note leaves a note for others who try to take the lock.
	Note(Holder) error
	// Unlock releases the lock.
	Unlock() error
	// RemoveAndUnlock releases the lock and deletes it, for a thread that no process will work on again.
	RemoveAndUnlock() error
}

// Holder identifies the holder of a lock.
type Holder = durable.Holder

// Process identifies a process, even if its ID is reused later.
type Process struct {
	Pid   int // 0 means none
	Birth string
}

// Lives reports whether the process is alive.
func (p Process) Lives() bool { return proc.Lives(p.Pid, p.Birth) }

// Orphan returns the living agent from the note at a thread's lock, or the zero value.
func Orphan(ctx context.Context, l Locker, thread string) Process {
	who, err := l.Holder(ctx, thread)
	if p := (Process{who.Child, who.Birth}); err == nil && p.Lives() {
		return p
	}
	return Process{}
}

// Files is a [Locker] that uses one file per thread. Background workers can inherit its locks.
type Files struct{ Dir string }

// Lock implements [Locker].
func (f Files) Lock(ctx context.Context, thread string) (Lock, error) {
	held, err := durable.Lock(ctx, f.file(thread))
	if err != nil {
		return nil, err // avoid a nil *durable.Held in a non-nil interface
	}
	return held, nil
}

// Held implements [Locker]. A process that takes the lock at the same moment waits briefly.
func (f Files) Held(_ context.Context, thread string) bool {
	held, err := durable.Locked(f.file(thread))
	return held && err == nil
}

// Holder implements [Locker].
func (f Files) Holder(_ context.Context, thread string) (Holder, error) {
	return durable.ReadHolder(f.file(thread))
}

// Inherited returns the lock that a parent process took and passed on.
func (f Files) Inherited(lock *os.File, thread string) (Lock, error) {
	held, err := durable.Inherited(lock, f.file(thread))
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (f Files) file(thread string) string { return filepath.Join(f.Dir, thread+".lock") }
