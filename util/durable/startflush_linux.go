package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// startFlush writes the content to the device and waits for that. Blocks are then allocated, and the next
// real flush needs only to flush the device's cache and the file system's journal. A size of 0 means the
// whole file.
func startFlush(f *os.File, size int64) error {
	const how = unix.SYNC_FILE_RANGE_WAIT_BEFORE | unix.SYNC_FILE_RANGE_WRITE | unix.SYNC_FILE_RANGE_WAIT_AFTER
	for {
		err := unix.SyncFileRange(int(f.Fd()), 0, size, how)
		switch {
		case errors.Is(err, unix.EINTR):
			continue
		case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EINVAL), errors.Is(err, unix.ESPIPE):
			return f.Sync() // not supported by this file system
		default:
			return os.NewSyscallError("sync_file_range", err)
		}
	}
}
