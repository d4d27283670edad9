package offlimits

import (
	"io/fs"
	"strings"
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

// renew moves an unchanged file to a new inode. A command may have kept a hard link to the old one, or
// sent its descriptor to another command that writes later. Files other than git's settings are renewed
// only if they have a second link. Where nothing can be made, nothing is.
func (k *keeper) renew(name string, info fs.FileInfo, s scope, text []byte, perm fs.FileMode) {
	if !strings.HasSuffix(name, ".sample") && (s == settings || links(info) > 1) {
		_ = k.replace(name, info, text, perm)
	}
}

// links counts the names of a file.
func links(info fs.FileInfo) uint64 {
	if stat, ok := info.Sys().(*syscall.Stat_t); ok {
		return uint64(stat.Nlink)
	}
	return 1
}

// own gives a file the owner and time of another one, where that is allowed.
func (k *keeper) own(name string, as fs.FileInfo) {
	if stat, ok := as.Sys().(*syscall.Stat_t); ok {
		_ = k.root.Chown(name, int(stat.Uid), int(stat.Gid))
	}
	_ = k.root.Chtimes(name, as.ModTime(), as.ModTime())
}
