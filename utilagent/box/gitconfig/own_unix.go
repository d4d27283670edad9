//go:build unix

package gitconfig

import (
	"os"
	"syscall"
)

// own restores the owner of a file that git has replaced, if permitted.
func own(path string, as os.FileInfo) {
	if stat, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = os.Lchown(path, int(stat.Uid), int(stat.Gid))
	}
}
