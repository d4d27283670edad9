package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// SafeMode tells which mode keeps the promise that nothing durable names a file
// before that file is durable, for files in store that are named by files in
// home, and why. It is [Batch] only if both are on one file system that is known
// to commit in order: ext4 with a journal, or XFS. Neither directory need exist.
func SafeMode(store, home string) (Mode, string) {
	s, err := statExisting(store)
	if err != nil {
		return Full, fmt.Sprintf("cannot tell the file system: %v", err)
	}
	h, err := statExisting(home)
	if err != nil {
		return Full, fmt.Sprintf("cannot tell the file system: %v", err)
	}
	if s.dev != h.dev {
		return Full, "the store and the home are on different file systems"
	}
	switch s.magic {
	case unix.XFS_SUPER_MAGIC:
		return Batch, "the file system is XFS"
	case unix.EXT4_SUPER_MAGIC: // ext2 and ext3 have the same number
		if hasJournal(s.dev) {
			return Batch, "the file system is ext4 with a journal"
		}
		return Full, "the file system is ext4 without a known journal"
	default:
		return Full, fmt.Sprintf("the file system (type %#x) is not known to keep the order of writes", s.magic)
	}
}

// place is where a directory is.
type place struct {
	dev   uint64
	magic int64
}

// statExisting looks at path, or at its nearest parent that exists: the place
// where path will be made.
func statExisting(path string) (place, error) {
	for {
		p, err := statPlace(path)
		if !errors.Is(err, fs.ErrNotExist) || path == filepath.Dir(path) {
			return p, err
		}
		path = filepath.Dir(path)
	}
}

func statPlace(path string) (place, error) {
	var st unix.Stat_t
	if err := unix.Stat(path, &st); err != nil {
		return place{}, &fs.PathError{Op: "stat", Path: path, Err: err}
	}
	var sfs unix.Statfs_t
	for {
		err := unix.Statfs(path, &sfs)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil {
			return place{}, &fs.PathError{Op: "statfs", Path: path, Err: err}
		}
		// The fields' sizes differ by architecture.
		return place{dev: uint64(st.Dev), magic: int64(sfs.Type)}, nil
	}
}

// hasJournal looks for the kernel's statistics of the device's journal, which
// are called <device>-<inode of the journal>. A journal on another device is not
// found: then Full, which is safe.
func hasJournal(dev uint64) bool {
	link := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(dev), unix.Minor(dev))
	target, err := os.Readlink(link)
	if err != nil {
		return false
	}
	device := filepath.Base(target)
	journals, err := os.ReadDir("/proc/fs/jbd2")
	if err != nil {
		return false
	}
	for _, j := range journals {
		if isJournalOf(j.Name(), device) {
			return true
		}
	}
	return false
}

// isJournalOf reports whether journal is device, "-" and a number; a device's own
// name may have dashes in it.
func isJournalOf(journal, device string) bool {
	inode, ok := strings.CutPrefix(journal, device+"-")
	return ok && inode != "" && strings.Trim(inode, "0123456789") == ""
}
