package fsstore

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// keepsOrder tells whether the file system at dir makes what is written and
// renamed durable in that order, so that one flush covers all that went before.
func keepsOrder(dir string) (ok bool, why string) {
	var fs unix.Statfs_t
	if err := unix.Statfs(dir, &fs); err != nil {
		return false, "the file system cannot be told: " + err.Error()
	}
	switch int64(fs.Type) {
	case unix.XFS_SUPER_MAGIC:
		return true, "XFS"
	case unix.EXT4_SUPER_MAGIC:
		return ext4Journal(dir)
	}
	return false, fmt.Sprintf("the file system (type %#x) is not known to keep writes in order", int64(fs.Type))
}

// ext4Journal looks for a journal that orders data, which ext4 may be without.
func ext4Journal(dir string) (ok bool, why string) {
	var st unix.Stat_t
	if err := unix.Stat(dir, &st); err != nil {
		return false, "the file system cannot be told: " + err.Error()
	}
	device := fmt.Sprintf("/sys/dev/block/%d:%d", unix.Major(st.Dev), unix.Minor(st.Dev))
	link, err := os.Readlink(device)
	if err != nil {
		return false, "ext4, but whether it has a journal cannot be told: " + err.Error()
	}
	options, err := os.ReadFile(filepath.Join("/proc/fs/ext4", filepath.Base(link), "options"))
	if err != nil {
		return false, "ext4, but whether it has a journal cannot be told: " + err.Error()
	}
	for line := range strings.Lines(string(options)) {
		switch strings.TrimSpace(line) {
		case "data=ordered", "data=journal":
			return true, "ext4 with " + strings.TrimSpace(line)
		}
	}
	return false, "ext4 without a journal that keeps data in order"
}
