package durable

import (
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// FlushesAll reports whether [SyncAll] makes everything on the file system of a directory durable and reports
// failure: on the file systems listed here, syncfs flushes contents, names and the device's cache, and it
// reports errors since Linux 5.8.
func FlushesAll(dir string) bool {
	var sfs unix.Statfs_t
	if !kernelSince(5, 8) || unix.Statfs(dir, &sfs) != nil {
		return false
	}
	switch int64(sfs.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC:
		return true
	}
	return false
}

// SyncAll makes everything written to the file system of a directory durable, by any process.
func SyncAll(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return pathError("flush", dir, err)
	}
	return pathError("flush", dir, unix.Syncfs(int(f.Fd())), f.Close())
}

// kernelSince reports whether the kernel has at least this version.
func kernelSince(major, minor int) bool {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return false
	}
	fields := strings.FieldsFunc(unix.ByteSliceToString(name.Release[:]), func(r rune) bool { return r < '0' || r > '9' })
	if len(fields) < 2 {
		return false
	}
	gotMajor, errMajor := strconv.Atoi(fields[0])
	gotMinor, errMinor := strconv.Atoi(fields[1])
	if errMajor != nil || errMinor != nil {
		return false
	}
	return gotMajor > major || gotMajor == major && gotMinor >= minor
}
