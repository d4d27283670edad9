package tmpfstest

import "golang.org/x/sys/unix"

// leastFree is the memory that must be free: containers have 64 MB, which one repository can fill.
const leastFree = 1 << 30

// suits reports whether a directory is a tmpfs with enough space that allows executing programs. Without
// that, a test that a program isn't started would prove nothing.
func suits(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && fs.Flags&unix.ST_NOEXEC == 0 &&
		fs.Bavail*uint64(fs.Bsize) >= leastFree
}
