//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

func rename(from, to string) error { return os.Rename(from, to) }

func openForSync(path string) (*os.File, error) { return os.Open(path) }

// touch leaves it to the kernel to say what time it is: on a network that is the
// server, whose clock also stamps writes.
func touch(path string) error { return unix.Utimes(path, nil) }

// syncDir flushes the names in a directory. Some network and FUSE file systems
// have no such operation and say so; there is nothing more that can be done.
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
