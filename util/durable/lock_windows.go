package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/windows"
)

// openLocked opens a lock file so that nobody else can open it for writing. A
// lock by LockFileEx would end with the process that took it; this one ends,
// like flock's, when the last copy of the handle is closed.
func openLocked(path string) (*os.File, error) {
	return openHandle(path, windows.GENERIC_READ|windows.GENERIC_WRITE)
}

// openShared opens a lock file so that others can open it for reading only: so
// can those who want it shared, but not who wants it alone.
func openShared(path string) (*os.File, error) {
	return openHandle(path, windows.GENERIC_READ)
}

func openHandle(path string, access uint32) (*os.File, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return nil, err
	}
	h, err := windows.CreateFile(name, access,
		windows.FILE_SHARE_READ, nil, windows.OPEN_ALWAYS, windows.FILE_ATTRIBUTE_NORMAL, 0)
	switch {
	case errors.Is(err, windows.ERROR_SHARING_VIOLATION):
		return nil, ErrLocked
	case errors.Is(err, windows.ERROR_PATH_NOT_FOUND):
		return nil, fs.ErrNotExist
	case err != nil:
		return nil, os.NewSyscallError("CreateFile", err)
	}
	return os.NewFile(uintptr(h), path), nil
}

// release has nothing to do: the lock is the open handle.
func (h *Held) release() error { return nil }

// Locked reports whether somebody holds the lock of a file. It makes no file.
func Locked(path string) (bool, error) {
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	held, err := TryLock(path)
	if errors.Is(err, ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, held.Unlock()
}

// RemoveAndUnlock removes the lock file, so that files of threads long gone do
// not pile up. Windows cannot remove an open file: it is closed first, and stays
// if somebody else has locked it since.
func (h *Held) RemoveAndUnlock() error {
	if err := h.f.Close(); err != nil {
		return pathError("unlock", h.path, err)
	}
	err := os.Remove(h.path)
	if errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return pathError("unlock", h.path, err)
}

// Inherited takes over the lock that a parent gave this process as an open file,
// and keeps it from our own children. Errors: [ErrNotLock] if it is not the
// file at path.
func Inherited(f *os.File, path string) (*Held, error) {
	current, err := isAt(f, path)
	if err != nil {
		return nil, pathError("lock", path, err)
	}
	if !current {
		return nil, pathError("lock", path, ErrNotLock)
	}
	if err := syscall.SetHandleInformation(syscall.Handle(f.Fd()), syscall.HANDLE_FLAG_INHERIT, 0); err != nil {
		return nil, pathError("lock", path, err)
	}
	return &Held{f: f, path: path}, nil
}

// KeepFromChildren does nothing: children get only the handles that they are
// given, and inherited ones have no numbers to find them by.
func KeepFromChildren(int, string) bool { return false }
