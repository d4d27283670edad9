package box

import (
	"fmt"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/safeopen"
)

// identity identifies the file at a path in the form of plan.Mount.Inode, or returns "".
func identity(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	return safeopen.Identity(info)
}

// born returns the identity of a file with the time of its creation, by which a later file with the same number
// differs.
func born(path string) string { return fmt.Sprint(identity(path), bornAt(path).UnixNano()) }

// bornAt returns the time of a file's creation, which is 1970 on some file systems.
func bornAt(path string) time.Time {
	var st unix.Statx_t
	_ = unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_BTIME, &st) // it may be gone
	return time.Unix(st.Btime.Sec, int64(st.Btime.Nsec))
}

// owner returns the owner that files written by root's programs in a workspace must get, or nil for root.
func owner(workspace string) *proc.Owner {
	info, err := os.Stat(workspace)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && st.Uid != 0 {
		return &proc.Owner{UID: int(st.Uid), GID: int(st.Gid)}
	}
	return nil
}
