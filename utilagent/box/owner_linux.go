package box

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"

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

// capabilities are the bits of names.
func capabilities(names []string) (bits uint64) {
	for _, name := range names {
		switch name {
		case "chown":
			bits |= 1 << unix.CAP_CHOWN
		case "dac_override":
			bits |= 1 << unix.CAP_DAC_OVERRIDE
		case "fowner":
			bits |= 1 << unix.CAP_FOWNER
		case "fsetid":
			bits |= 1 << unix.CAP_FSETID
		case "net_bind_service":
			bits |= 1 << unix.CAP_NET_BIND_SERVICE
		case "net_raw":
			bits |= 1 << unix.CAP_NET_RAW
		}
	}
	return bits
}
