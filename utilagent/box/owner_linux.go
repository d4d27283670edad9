package box

import (
	"fmt"
	"os"
	"syscall"

	"github.com/united-workforce/uwf/util/proc"
)

// identity identifies the file at a path in the form of plan.Mount.Inode, or returns "".
func identity(path string) string {
	info, err := os.Lstat(path)
	if err != nil {
		return ""
	}
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", st.Dev, st.Ino)
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
