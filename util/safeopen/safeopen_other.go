//go:build !unix

package safeopen

import (
	"io/fs"
)

// Here opening a path does not wait, and a link that takes a file's place between
// two looks at it cannot be told.
const (
	openNonblock = 0
	openNoFollow = 0
)

// Owner is the id of the user to whom a file belongs. ok is false if that cannot
// be told, as here.
func Owner(fs.FileInfo) (id int, ok bool) { return 0, false }

// Identity identifies a file on this machine; "": not on this system.
func Identity(fs.FileInfo) string { return "" }

// OthersWrite reports whether others on this machine than the user may write a file,
// as far as its mode says so: here it does not.
func OthersWrite(fs.FileInfo) bool { return false }

// Reachable reports whether others than its owner can get to a path at all.
func Reachable(string) bool { return true }
