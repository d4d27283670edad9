package offlimits

import (
	"crypto/rand"
	"errors"
	"io/fs"
	"os"
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

// renew gives a file that stays as it is another inode: a command may have kept a second name for
// the old one, or handed a descriptor of it to another command, which writes later. Other files
// than git's settings are left alone unless they have such a name.
func (k *keeper) renew(name string, info fs.FileInfo, s scope, text []byte, perm fs.FileMode) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok || strings.HasSuffix(name, ".sample") || s != settings && stat.Nlink < 2 {
		return nil
	}
	temp := name + "." + rand.Text()
	if err := k.write(temp, text, perm); err != nil {
		return err
	}
	owner := k.root.Chown(temp, int(stat.Uid), int(stat.Gid))
	if os.Geteuid() != 0 {
		owner = nil // a group that the user has left
	}
	err := errors.Join(owner, k.root.Chtimes(temp, info.ModTime(), info.ModTime()))
	if err == nil {
		err = k.root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, k.root.Remove(temp))
	}
	return nil
}
