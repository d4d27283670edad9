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
	// openNonblock keeps the opening of a pipe from waiting for its other end, and
	// that of a terminal from making it ours.
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
	openNoFollow = syscall.O_NOFOLLOW
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

// Identity identifies a file on this machine, whatever its name; "" if that is unknown.
func Identity(info fs.FileInfo) string {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d:%d", stat.Dev, stat.Ino)
}

// OthersWrite reports whether others on this machine than root and the user may write
// a file or directory. Its owner is for [Owner] to tell; a group that is the user's or
// the owner's own alone does not count.
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

// system is a file of the system, "" if it cannot be read or is beyond all measure.
func system(path string) string {
	const most = 8 << 20
	text, err := ReadFile(path, most, Follow)
	if err != nil {
		return ""
	}
	return string(text)
}

// Reachable reports whether others than its owner can get to a path at all.
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
