//go:build unix

package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/safeopen"
)

// openLocked opens and locks a lock file, or fails with ErrLocked. Package os opens it close-on-exec.
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

// Locked reports whether a process holds the lock of a file. It creates no file, needs no write permission,
// and blocks other lockers only for an instant.
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
			return lockError(err)
		}
	}
}

// lockError explains the errors of file systems without locks, such as some network file systems.
func lockError(err error) error {
	if errors.Is(err, unix.ENOLCK) || errors.Is(err, errors.ErrUnsupported) {
		return fmt.Errorf("the file system does not support locks; use a home on another one: %w", err)
	}
	return os.NewSyscallError("flock", err)
}

// release unlocks immediately. If it only closed the file, a process being started by another goroutine would
// keep the lock until it has called exec.
func (h *Held) release() error {
	if h.shared {
		return nil // unlocking would also release the child's copy
	}
	return os.NewSyscallError("flock", unix.Flock(int(h.f.Fd()), unix.LOCK_UN))
}

// RemoveAndUnlock removes the lock file, so that files of old threads don't accumulate. No child may have
// inherited the lock. The next locker of the path creates a new file.
func (h *Held) RemoveAndUnlock() error {
	return pathError("unlock", h.path, os.Remove(h.path), h.release(), h.f.Close())
}

// Inherited takes over a lock that the parent process passed as an open file, and doesn't pass it on to
// children. It returns [ErrLocked] if f doesn't hold the lock, and [ErrNotLock] if it isn't the file at path.
func Inherited(f *os.File, path string) (*Held, error) {
	current, err := isAt(f, path)
	if err != nil {
		return nil, pathError("lock", path, err)
	}
	if !current {
		return nil, pathError("lock", path, ErrNotLock)
	}
	unix.CloseOnExec(int(f.Fd()))
	// Locking an open file that already holds the lock succeeds without effect.
	if err := flock(f, unix.LOCK_EX); err != nil {
		return nil, pathError("lock", path, err)
	}
	return &Held{f: f, path: path, shared: true}, nil
}

// KeepFromChildren marks an inherited descriptor close-on-exec if it holds the lock at path: a process left
// behind by an agent must not look like the agent. It reports whether fd is that file, and leaves any other
// unchanged.
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

func rename(from, to string) error { return os.Rename(from, to) }

func openForSync(path string) (*os.File, error) { return os.Open(path) }

// touch lets the kernel determine the time: on a network file system that is the server, whose clock also
// stamps writes.
func touch(path string) error { return unix.Utimes(path, nil) }

// syncDir flushes the names in a directory. It ignores errors of network and FUSE file systems that don't
// support that, because there is no alternative.
func syncDir(path string) error {
	d, err := os.Open(path)
	if err != nil {
		return err
	}
	err = d.Sync()
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOTSUP) {
		err = nil
	}
	return errors.Join(err, d.Close())
}

// MaxOpenFiles returns the number of files that this process can have open.
func MaxOpenFiles() uint64 {
	var limit unix.Rlimit
	_ = unix.Getrlimit(unix.RLIMIT_NOFILE, &limit) // 0 is safe as well
	return uint64(limit.Cur)
}

// FreeSpace returns the number of bytes available to this user on the file system of path.
func FreeSpace(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}

// HasOtherNames reports whether a file has other hard links.
func HasOtherNames(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	return ok && stat.Nlink > 1
}
