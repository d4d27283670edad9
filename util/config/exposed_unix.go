//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// modesMatter reports whether file modes determine who can read a file.
const modesMatter = true

// foreignOwner returns the owner of a file if it is neither the user nor root.
func foreignOwner(info fs.FileInfo) (uid uint32, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, stat.Uid != 0 && int64(stat.Uid) != int64(os.Geteuid())
}
