//go:build unix

package durable

import (
	"errors"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/safeopen"
)

// openLocked opens a lock file and locks it, or fails with ErrLocked. Package os
// opens it close-on-exec.
func openLocked(path string) (*os.File, error) {
	return openFlocked(path, os.O_RDWR, unix.LOCK_EX)
}

// openShared is openLocked for a shared lock.
func openShared(path string) (*os.File, error) {
	return openFlocked(path, os.O_RDONLY, unix.LOCK_SH)
}

func openFlocked(path string, access, how int) (*os.File, error) {
	f, err := safeopen.OpenFile(path, access|os.O_CREATE, 0o644, safeopen.Follow)
	if err != nil {
		return nil, err
	}
	if err := flock(f, how); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Locked reports whether somebody holds the lock of a file. It makes no file,
// needs no right to write, and is in the way of whoever takes the lock for an
// instant only.
func Locked(path string) (bool, error) {
	f, err := safeopen.OpenFile(path, os.O_RDONLY, 0, safeopen.Follow)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = flock(f, unix.LOCK_SH)
	if errors.Is(err, ErrLocked) {
		return true, f.Close()
	}
	if err == nil { // see release
		err = flock(f, unix.LOCK_UN)
	}
	return false, errors.Join(err, f.Close())
}

func flock(f *os.File, how int) error {
	for {
		err := unix.Flock(int(f.Fd()), how|unix.LOCK_NB)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.EWOULDBLOCK):
			return ErrLocked
		default:
			return os.NewSyscallError("flock", err)
		}
	}
}

// release unlocks at once. Closing the file alone would leave the lock to a
// process that another goroutine is just starting, until that has called exec.
func (h *Held) release() error {
	if h.shared {
		return nil // it would unlock the child's copy too
	}
	return os.NewSyscallError("flock", unix.Flock(int(h.f.Fd()), unix.LOCK_UN))
}

// RemoveAndUnlock removes the lock file, so that files of threads long gone do
// not pile up. Only for a lock that no child has inherited: the next one to lock
// the path gets a new file.
func (h *Held) RemoveAndUnlock() error {
	return pathError("unlock", h.path, os.Remove(h.path), h.release(), h.f.Close())
}

// Inherited takes over the lock that a parent gave this process as an open file,
// and keeps it from our own children. Errors: [ErrLocked] if f does not hold
// the lock, [ErrNotLock] if it is not the file at path.
func Inherited(f *os.File, path string) (*Held, error) {
	current, err := isAt(f, path)
	if err != nil {
		return nil, pathError("lock", path, err)
	}
	if !current {
		return nil, pathError("lock", path, ErrNotLock)
	}
	unix.CloseOnExec(int(f.Fd()))
	// Locking again an open file that holds the lock succeeds and changes nothing.
	if err := flock(f, unix.LOCK_EX); err != nil {
		return nil, pathError("lock", path, err)
	}
	return &Held{f: f, path: path, shared: true}, nil
}

// KeepFromChildren makes sure that an inherited descriptor which holds the lock
// at path is not inherited further: a process that an agent leaves behind must
// not look like the agent. It reports whether fd is that file, and leaves any
// other alone.
func KeepFromChildren(fd int, path string) bool {
	var opened, named unix.Stat_t
	if unix.Fstat(fd, &opened) != nil || unix.Stat(path, &named) != nil {
		return false
	}
	if opened.Dev != named.Dev || opened.Ino != named.Ino {
		return false
	}
	unix.CloseOnExec(fd)
	return true
}
