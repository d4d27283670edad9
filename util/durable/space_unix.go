//go:build unix

package durable

import "golang.org/x/sys/unix"

// FreeSpace returns the number of bytes available to this user on the file system of path.
func FreeSpace(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
