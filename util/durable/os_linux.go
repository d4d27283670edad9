package durable

import (
	"errors"
	"fmt"
	"os"
	"slices"

	"golang.org/x/sys/unix"
)

// SyncAll makes everything written to the file system of a directory durable, by any process. It returns
// [errors.ErrUnsupported] unless syncfs flushes contents, names and the device's cache there, and reports failure, as it
// does since Linux 5.8.
func SyncAll(dir string) error {
	var sfs unix.Statfs_t
	if err := unix.Statfs(dir, &sfs); err != nil {
		return pathError("flush", dir, err)
	}
	known := []int64{unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC}
	var name unix.Utsname
	var major, minor int
	if err := unix.Uname(&name); err == nil {
		_, _ = fmt.Sscanf(unix.ByteSliceToString(name.Release[:]), "%d.%d", &major, &minor) // 0 is too old
	}
	if !slices.Contains(known, int64(sfs.Type)) || major < 5 || major == 5 && minor < 8 {
		return pathError("flush", dir, errors.ErrUnsupported)
	}
	f, err := os.Open(dir)
	if err != nil {
		return pathError("flush", dir, err)
	}
	return pathError("flush", dir, unix.Syncfs(int(f.Fd())), f.Close())
}

// swap exchanges two files. ext4 writes the data of a file that is renamed over another one at once, which takes three
// times as long.
func (d *disk) swap(a, b string) error {
	if d.dir != "" {
		return errors.ErrUnsupported
	}
	if info, err := os.Lstat(b); err != nil || info.IsDir() {
		return errors.Join(err, unix.EISDIR)
	}
	return unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
}
