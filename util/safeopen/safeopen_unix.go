//go:build unix

package safeopen

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
)

const (
	// openNonblock prevents opening a pipe from blocking, and a terminal from becoming our controlling
	// terminal.
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
	openNoFollow = syscall.O_NOFOLLOW
)

// Owner returns the id of a file's owner. ok is false if it is unknown.
func Owner(info fs.FileInfo) (id int, ok bool) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, false
	}
	return int(stat.Uid), true
}

// Identity identifies a file on this machine, regardless of its name; "" if unknown.
func Identity(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// OthersWrite reports whether users other than root and this user can write a file or directory. It doesn't
// check the owner, see [Owner]. A group that only the user or the owner belongs to doesn't count.
func OthersWrite(info fs.FileInfo) bool {
	const some = 0o022
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || info.Mode().Perm()&some == 0 {
		return false
	}
	mode, gid := uint32(info.Mode().Perm()), int(stat.Gid)
	known := accounts{groups: system("/etc/group"), users: system("/etc/passwd")}
	return writtenByOthers(mode, gid, os.Geteuid(), known) && writtenByOthers(mode, gid, int(stat.Uid), known)
}

// system reads a system file; "" if it is unreadable or too large.
func system(path string) string {
	const most = 8 << 20
	text, err := ReadFile(path, most, Follow)
	if err != nil {
		return ""
	}
	return string(text)
}

// Reachable reports whether users other than the owner can access a path at all.
func Reachable(path string) bool {
	const pass = 0o011
	for dir := filepath.Dir(path); ; dir = filepath.Dir(dir) {
		info, err := os.Stat(dir)
		if err == nil && info.Mode().Perm()&pass == 0 {
			return false
		}
		if dir == filepath.Dir(dir) {
			return true
		}
	}
}
