package endcheck

import (
	"errors"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// stampOf returns the stamp of a name in an open directory, without following links.
func stampOf(top *os.File, name string) (stamp, error) {
	var st unix.Stat_t
	if err := unix.Fstatat(int(top.Fd()), name, &st, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return stamp{}, err
	}
	return stamp{
		Dev: uint64(st.Dev), Ino: st.Ino, Changed: st.Ctim.Nano(), Modified: st.Mtim.Nano(), Size: st.Size, //nolint:unconvert // differs by system
		Dir: st.Mode&unix.S_IFMT == unix.S_IFDIR, File: st.Mode&unix.S_IFMT == unix.S_IFREG, Perm: fs.FileMode(st.Mode & 0o777),
	}, nil
}

// bornOf is like stampOf with the time of the file's creation, by which a later file with the same number differs.
func bornOf(top *os.File, name string) (stamp, error) {
	st, err := stampOf(top, name)
	var more unix.Statx_t
	if err == nil && unix.Statx(int(top.Fd()), name, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &more) == nil {
		st.Born = more.Btime.Sec*1e9 + int64(more.Btime.Nsec)
	}
	return st, err
}

// renameIn renames an entry without replacing an existing one.
func renameIn(from *os.File, name string, to *os.File, as string) error {
	err := unix.Renameat2(int(from.Fd()), name, int(to.Fd()), as, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOSYS) { // the file system does not support RENAME_NOREPLACE
		if _, gone := stampOf(to, as); gone == nil {
			return fs.ErrExist
		}
		err = unix.Renameat(int(from.Fd()), name, int(to.Fd()), as)
	}
	return err
}

// give gives a new file to the owner of its directory, if this process runs as root.
func give(f *os.File, root *os.Root, dir string) {
	if info, err := root.Stat(dir); err == nil && os.Geteuid() == 0 {
		if st, ok := info.Sys().(*syscall.Stat_t); ok {
			_ = f.Chown(int(st.Uid), int(st.Gid))
		}
	}
}

// fileClock returns the time that a file system would assign to a change made now.
func fileClock() int64 {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME_COARSE, &now); err != nil {
		return 0 // everything is read again
	}
	return now.Nano()
}
