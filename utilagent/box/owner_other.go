//go:build !linux

package box

import (
	"io/fs"
	"time"

	"github.com/united-workforce/uwf/util/proc"
)

func identity(string) string { return "" }

func inode(fs.FileInfo) string { return "" }

func born(string) string { return "" }

func bornAt(string) time.Time { return time.Time{} }

func owner(string) *proc.Owner { return nil }
