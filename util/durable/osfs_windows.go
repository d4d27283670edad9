package durable

import (
	"errors"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// A reader that has the target open, such as a virus scanner, makes a rename
// fail for the moment. Together the waits are about two seconds.
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

// openForSync asks for write access, which Windows demands for a flush.
func openForSync(path string) (*os.File, error) { return os.OpenFile(path, os.O_RDWR, 0) }

// syncDir has nothing to do: NTFS journals names itself, and Windows has no
// documented flush for a directory.
func syncDir(path string) error {
	_, err := os.Stat(path)
	return err
}
