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

// renew moves an unchanged file to a new inode. A command may have kept a hard link to the old one, or
// sent its descriptor to another command that writes later. Files other than git's settings are renewed
// only if they have a second link.
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
