package box

import (
	"fmt"
	"os"
	"syscall"

	"github.com/united-workforce/uwf/util/proc"
)

// identity says which file is at a path, as plan.Mount.Inode has it; "": none.
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

// owner is whose files root's programs write in a workspace; nil: their own.
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
