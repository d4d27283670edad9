//go:build unix

package putback

import (
	"io/fs"
	"syscall"
)

// links counts the names of a file.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink) //nolint:unconvert // differs by system
	}
	return 1
}
