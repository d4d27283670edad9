//go:build unix

package config

import (
	"io/fs"
	"os"
	"syscall"
)

// modesMatter tells that the mode of a file says who can read it.
const modesMatter = true

// foreignOwner returns the owner of a file if it is neither the user nor root.
func foreignOwner(info fs.FileInfo) (uid uint32, foreign bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return stat.Uid, stat.Uid != 0 && int64(stat.Uid) != int64(os.Geteuid())
}

// othersWrite reports whether others than the user, root and the user's own group
// may write a file.
func othersWrite(info fs.FileInfo) bool {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return false
	}
	const group, all = 0o020, 0o002
	mode := info.Mode().Perm()
	return mode&all != 0 || mode&group != 0 && stat.Gid != 0 && int64(stat.Gid) != int64(os.Getegid())
}
