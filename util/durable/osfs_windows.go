package durable

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

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
