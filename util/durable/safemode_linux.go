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

// SafeMode returns the fastest mode that guarantees that a file is durable before any durable file references
// it, for files in store that files in home reference, and the reason. It is [Batch] only if both are on one
// file system that is known to commit in order: ext4 with a journal, or XFS. The directories needn't exist.
func SafeMode(store, home string) (Mode, string) {
	s, err := statExisting(store)
	if err != nil {
		return Full, fmt.Sprintf("unknown file system: %v", err)
	}
	h, err := statExisting(home)
	if err != nil {
		return Full, fmt.Sprintf("unknown file system: %v", err)
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

// place identifies the file system of a directory.
type place struct {
	dev   uint64
	magic int64
}

// statExisting examines path or its nearest existing parent, where path will be created.
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
		// The types of the fields differ by architecture.
		return place{dev: uint64(st.Dev), magic: int64(sfs.Type)}, nil
	}
}

// hasJournal looks for the kernel's statistics of the device's journal, named <device>-<inode of the
// journal>. It doesn't find a journal on another device; the mode then is Full, which is safe.
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

// isJournalOf reports whether journal is device, "-" and a number; a device name can contain dashes.
func isJournalOf(journal, device string) bool {
	inode, ok := strings.CutPrefix(journal, device+"-")
	return ok && inode != "" && strings.Trim(inode, "0123456789") == ""
}
