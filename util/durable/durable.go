// Package durable is the only way in which the program changes a disk. Every
// write, rename, removal and flush goes through an [FS], so that a test can
// record them and cut the power after any of them (package durabletest).
//
// Files that name other data are replaced whole ([WriteFile]: temporary file,
// flush, rename, flush of the directory) or appended to and flushed
// ([AppendFile]); both happen under a [Lock] when more than one process may
// write. Many files that nothing names yet are written as one unit ([WriteAll]).
//
// Lock files are the one exception: they carry no data, so they bypass FS.
package durable

import "io/fs"

// FS is every operation that changes a disk. Errors are *[fs.PathError] with the
// path that the caller named.
type FS interface {
	// WriteTemp makes a file with a unique name beside path and returns that
	// name. If flush is set, the content is durable when it returns. After an
	// error nothing is left behind.
	WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error)
	// Rename replaces to, if it exists, in one step.
	Rename(from, to string) error
	// Append adds data at the end of path, making it if need be. After an error
	// the file is as long as before. It is not atomic: a kill leaves a part.
	Append(path string, data []byte, perm fs.FileMode, flush Flush) error
	Truncate(path string, size int64) error
	Remove(path string) error
	MkdirAll(path string, perm fs.FileMode) error
	// Touch sets the time of path's last change to now, by the clock that also
	// stamps writes. It is not flushed.
	Touch(path string) error
	// StartSync hands what was written to path to the device, like StartFlush.
	StartSync(path string) error
	// SyncFile and SyncDir make what was written to path, or the names in it, durable.
	SyncFile(path string) error
	SyncDir(path string) error
}

// Flush says how far a write has to get before it returns.
type Flush int

// How far.
const (
	NoFlush    Flush = iota // into the page cache: survives a kill, not a power cut
	StartFlush              // handed to the device, which may still cache it; a later flush on the same disk completes it
	FullFlush               // on the disk
)
