package durable

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/windows"
)

// openLocked opens a lock file so that no other process can open it for writing. A lock made by LockFileEx
// would end with its process; this one ends, like flock's, when the last copy of the handle is closed.
func openLocked(path string) (*os.File, error) {
	return openHandle(path, windows.GENERIC_READ|windows.GENERIC_WRITE)
}

// openShared opens a lock file so that others can open it only for reading. This allows other shared locks,
// but no exclusive one.
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

// release does nothing, because the lock is the open handle.
func (h *Held) release() error { return nil }

// Locked reports whether a process holds the lock of a file. It creates no file.
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

// RemoveAndUnlock removes the lock file, so that files of old threads don't accumulate. Windows can't remove
// an open file, so it is closed first; it remains if another process has locked it since.
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

// Inherited takes over a lock that the parent process passed as an open file, and doesn't pass it on to
// children. It returns [ErrNotLock] if it isn't the file at path.
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

// KeepFromChildren does nothing, because children get only the handles passed to them.
func KeepFromChildren(int, string) bool { return false }

// A rename fails while a reader, such as a virus scanner, has the target open. All retries together take
// about two seconds.
const (
	renameTries = 40
	renameWait  = 50 * time.Millisecond
)

func rename(from, to string) error {
	var err error
	for range renameTries {
		err = os.Rename(from, to)
		if !errors.Is(err, windows.ERROR_SHARING_VIOLATION) && !errors.Is(err, windows.ERROR_ACCESS_DENIED) {
			return err
		}
		time.Sleep(renameWait)
	}
	return err
}

// openForSync opens for writing, which Windows requires for a flush.
func openForSync(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

func touch(path string) error {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return err
	}
	const everybody = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	h, err := windows.CreateFile(name, windows.FILE_WRITE_ATTRIBUTES, everybody, nil,
		windows.OPEN_EXISTING, windows.FILE_ATTRIBUTE_NORMAL, 0)
	if err != nil {
		return err
	}
	var now windows.Filetime
	windows.GetSystemTimeAsFileTime(&now)
	return errors.Join(windows.SetFileTime(h, nil, nil, &now), windows.CloseHandle(h))
}

// syncDir does nothing: NTFS journals names, and Windows has no documented flush for a directory.
func syncDir(path string) error {
	_, err := os.Stat(path)
	return err
}

// MaxOpenFiles returns the number of files that this process can have open.
func MaxOpenFiles() uint64 { return 1 << 24 }

// FreeSpace returns the number of bytes available to this user on the volume of path.
func FreeSpace(path string) (uint64, error) {
	name, err := windows.UTF16PtrFromString(path)
	if err != nil {
		return 0, err
	}
	var free uint64
	return free, windows.GetDiskFreeSpaceEx(name, &free, nil, nil)
}

// HasOtherNames always reports false, because the answer would take another system call.
func HasOtherNames(fs.FileInfo) bool { return false }
