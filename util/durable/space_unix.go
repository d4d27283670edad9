//go:build unix

package durable

import "golang.org/x/sys/unix"

// FreeSpace is how many bytes this user can still write to the file system that
// path is on.
func FreeSpace(path string) (uint64, error) {
	var s unix.Statfs_t
	if err := unix.Statfs(path, &s); err != nil {
		return 0, err
	}
	return uint64(s.Bavail) * uint64(s.Bsize), nil
}
