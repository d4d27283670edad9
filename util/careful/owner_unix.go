//go:build unix

package careful

import (
	"io/fs"
	"syscall"
)

// Owner is the id of the user to whom a file belongs. ok is false if that cannot
// be told.
func Owner(info fs.FileInfo) (id int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}
