//go:build !unix

package safeopen

import (
	"io/fs"
)

// On this system, opening a path doesn't block, and replacing a file by a link between two checks can't be
// detected.
const (
	openNonblock = 0
	openNoFollow = 0
)

// Owner returns the id of a file's owner. ok is false, because it is unknown on this system.
func Owner(fs.FileInfo) (id int, ok bool) { return 0, false }

// Identity identifies a file on this machine. It returns "" on this system.
func Identity(fs.FileInfo) string { return "" }

// OthersWrite reports whether the mode allows other users to write a file. On this system it returns false.
func OthersWrite(fs.FileInfo) bool { return false }

// Reachable reports whether users other than the owner can access a path at all.
func Reachable(string) bool { return true }
