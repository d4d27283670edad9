//go:build unix

package gitconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// own gives a file the owner of another one, if permitted.
func own(f *os.File, as fs.FileInfo) {
	if stat, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = f.Chown(int(stat.Uid), int(stat.Gid))
	}
}
