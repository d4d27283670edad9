// Package durable is the only way in which the program changes a disk. Every
// write, rename, removal and flush goes through an [FS], so that a test can
// record them ([Recorder]) and cut the power after any of them ([Replay]).
//
// Files that name other data are replaced whole (temporary file, flush, rename,
// flush of the directory) or appended to and flushed; both happen under a
// [Lock] when more than one process may write.
package durable

import (
	"context"
	"io/fs"
	"os"
)

// FS is every operation that changes a disk.
type FS interface {
	// WriteTemp makes a file with a unique name beside path and returns that
	// name. If flush is set, the content is durable when it returns.
	WriteTemp(path string, data []byte, perm fs.FileMode, flush Flush) (temp string, err error)
	Rename(from, to string) error
	Append(path string, data []byte, perm fs.FileMode, flush Flush) error
	Truncate(path string, size int64) error
	Remove(path string) error
	MkdirAll(path string, perm fs.FileMode) error
	// SyncFile and SyncDir make what was written to path, or the names in it, durable.
	SyncFile(path string) error
	SyncDir(path string) error
}

// Flush says how far a write has to get before it returns.
type Flush int

// How far.
const (
	NoFlush    Flush = iota // into the page cache: survives a kill, not a power cut
	StartFlush              // write-back has begun (sync_file_range); something later waits for it
	FullFlush               // on the disk
)

// OS is the real disk.
func OS() FS { panic("unwritten") }

// WriteFile replaces path whole: temporary file, flush, rename, flush of the directory.
func WriteFile(fsys FS, path string, data []byte, perm fs.FileMode) error { panic("unwritten") }

// Lock takes an exclusive lock on a file, making it if need be. It waits until
// ctx ends. The lock belongs to the open file: a child that inherits
// [Held.File] holds it too, until every copy is closed.
func Lock(ctx context.Context, path string) (*Held, error) { panic("unwritten") }

// TryLock is Lock, but fails at once with ErrLocked.
func TryLock(path string) (*Held, error) { panic("unwritten") }

// Held is a lock that this process holds.
type Held struct{ f *os.File }

// File is the open file, to be inherited by a child.
func (h *Held) File() *os.File { return h.f }

// Unlock gives the lock back. The file stays.
func (h *Held) Unlock() error { panic("unwritten") }
