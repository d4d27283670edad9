package offlimits

import (
	"io/fs"
	"syscall"
	"time"
)

// changed is when a file was made, moved or changed last. No program can set it.
func changed(info fs.FileInfo) time.Time {
	if s, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(s.Ctim.Unix())
	}
	return info.ModTime()
}
