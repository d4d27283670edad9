//go:build unix

package durable

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

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
