package tmpfstest

import "golang.org/x/sys/unix"

// leastFree is how much memory must be free: containers have 64 MB, which one repository can fill.
const leastFree = 1 << 30

// suits reports whether a directory is a tmpfs with room that can hold programs: tests write those, too,
// and one that must not start would prove nothing where none does.
func suits(dir string) bool {
	var fs unix.Statfs_t
	return unix.Statfs(dir, &fs) == nil && fs.Type == unix.TMPFS_MAGIC && fs.Flags&unix.ST_NOEXEC == 0 &&
		fs.Bavail*uint64(fs.Bsize) >= leastFree
}
