// Package locker lets one process at a time work on a thread.
package locker

import (
	"context"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
)

// ErrLocked means that another process works on a thread.
var ErrLocked = durable.ErrLocked

// Locker lets one process at a time work on a thread. A lock ends with its holder,
// however that ends. [Files] is the usual one;
// lockertest is what every one must do.
type Locker interface {
	// Lock takes a thread's lock, or waits for it until ctx ends: then the error is
	// [ErrLocked].
	Lock(ctx context.Context, thread string) (Lock, error)
	// Held reports whether somebody holds a thread's lock.
	Held(ctx context.Context, thread string) bool
	// Holder is what the holder of a lock, or its last one, has noted. It is for
	// messages, and for finding agents whose engine was killed.
	Holder(ctx context.Context, thread string) (Holder, error)
}

// Lock is a thread's lock, held.
type Lock interface {
	// Note leaves a word for those who meet the lock.
	Note(Holder) error
	// Unlock gives the lock back.
	Unlock() error
	// RemoveAndUnlock gives back the lock of a thread that nobody will work on.
	RemoveAndUnlock() error
}

// Holder says who holds a lock.
type Holder = durable.Holder

// Process is one that can be told from another with its id.
type Process struct {
	Pid   int // 0: none
	Birth string
}

// Lives reports whether it is alive.
func (p Process) Lives() bool { return proc.Lives(p.Pid, p.Birth) }

// Orphan is the living agent that the note at a thread's lock names, if any.
func Orphan(ctx context.Context, l Locker, thread string) Process {
	who, err := l.Holder(ctx, thread)
	if p := (Process{who.Child, who.Birth}); err == nil && p.Lives() {
		return p
	}
	return Process{}
}

// Files is a [Locker] with a file for each thread. It is the one whose locks a
// background worker can inherit.
type Files struct{ Dir string }

// Lock implements [Locker].
func (f Files) Lock(ctx context.Context, thread string) (Lock, error) {
	held, err := durable.Lock(ctx, f.file(thread))
	if err != nil {
		return nil, err // not a nil *durable.Held in an interface
	}
	return held, nil
}

// Held implements [Locker]. Whoever takes the lock at that moment waits for an instant.
func (f Files) Held(_ context.Context, thread string) bool {
	held, err := durable.Locked(f.file(thread))
	return held && err == nil
}

// Holder implements [Locker].
func (f Files) Holder(_ context.Context, thread string) (Holder, error) {
	return durable.ReadHolder(f.file(thread))
}

// Inherited is the lock that a parent process has taken and handed on.
func (f Files) Inherited(lock *os.File, thread string) (Lock, error) {
	held, err := durable.Inherited(lock, f.file(thread))
	if err != nil {
		return nil, err
	}
	return held, nil
}

func (f Files) file(thread string) string { return filepath.Join(f.Dir, thread+".lock") }
