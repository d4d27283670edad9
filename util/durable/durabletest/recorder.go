// Package durabletest tests a package's guarantees for power cuts. A [Recorder] records the package's changes
// to a disk, and [Replay] returns the possible contents of the disk after a power cut at any point.
package durabletest

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/durable"
)

// Kind is the kind of an operation.
type Kind string

// The kinds of operations.
const (
	OpWrite    Kind = "write" // a temporary file with its content
	OpRename   Kind = "rename"
	OpAppend   Kind = "append"
	OpTruncate Kind = "truncate"
	OpRemove   Kind = "remove"
	OpMkdir    Kind = "mkdir" // one directory whose parent exists
	OpSyncFile Kind = "syncfile"
	OpSyncDir  Kind = "syncdir"
	OpSyncAll  Kind = "syncall" // everything written before; only in traces of system calls
)

// Op is a successful operation.
type Op struct {
	Kind  Kind
	Path  string // slash-separated, relative to the recorder's root, which is "."
	To    string // for a rename
	Data  []byte
	Size  int64 // for a truncation
	Perm  fs.FileMode
	Flush durable.Flush
}

// String returns a short description, for the message of a failing test.
func (o Op) String() string {
	switch o.Kind {
	case OpRename:
		return fmt.Sprintf("rename %s to %s", o.Path, o.To)
	case OpWrite, OpAppend:
		return fmt.Sprintf("%s %d bytes to %s, flush %d", o.Kind, len(o.Data), o.Path, o.Flush)
	default:
		return fmt.Sprintf("%s %s", o.Kind, o.Path)
	}
}

// Recorder is a [durable.FS] that performs and records all operations below a root directory. It is safe for
// concurrent use and performs one operation at a time.
type Recorder struct {
	disk durable.FS
	root string
	mu   sync.Mutex
	ops  []Op
}

// NewRecorder returns a Recorder for changes below root. A [Replay] doesn't include what root contains
// already, so start with an empty one.
func NewRecorder(disk durable.FS, root string) *Recorder { return &Recorder{disk: disk, root: root} }

// Ops returns the operations so far.
func (r *Recorder) Ops() []Op {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ops)
}

// WriteTemp implements [durable.FS].
func (r *Recorder) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (temp string, err error) {
	err = r.do(path, func() (Op, error) {
		temp, err = r.disk.WriteTemp(path, data, perm, flush)
		return Op{Kind: OpWrite, Path: temp, Data: slices.Clone(data), Perm: perm, Flush: flush}, err
	})
	return temp, err
}

// Rename implements [durable.FS].
func (r *Recorder) Rename(from, to string) error {
	return r.do(to, func() (Op, error) {
		target, err := r.below(to)
		if err != nil {
			return Op{}, err
		}
		return Op{Kind: OpRename, Path: from, To: target}, r.disk.Rename(from, to)
	})
}

// Append implements [durable.FS].
func (r *Recorder) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	return r.do(path, func() (Op, error) {
		op := Op{Kind: OpAppend, Path: path, Data: slices.Clone(data), Perm: perm, Flush: flush}
		return op, r.disk.Append(path, data, perm, flush)
	})
}

// Extend implements [durable.FS].
func (r *Recorder) Extend(path string, data []byte, most int64) error {
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpAppend, Path: path, Data: slices.Clone(data), Perm: 0o600}, r.disk.Extend(path, data, most)
	})
}

// Truncate implements [durable.FS].
func (r *Recorder) Truncate(path string, size int64) error {
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpTruncate, Path: path, Size: size}, r.disk.Truncate(path, size)
	})
}

// Remove implements [durable.FS].
func (r *Recorder) Remove(path string) error {
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpRemove, Path: path}, r.disk.Remove(path)
	})
}

// MkdirAll implements [durable.FS]. Each directory created is a separate operation.
func (r *Recorder) MkdirAll(path string, perm fs.FileMode) error {
	if _, err := os.Stat(path); !errors.Is(err, fs.ErrNotExist) {
		return r.disk.MkdirAll(path, perm) // it already exists
	}
	if err := r.MkdirAll(filepath.Dir(path), perm); err != nil {
		return err
	}
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpMkdir, Path: path, Perm: perm}, r.disk.MkdirAll(path, perm)
	})
}

// Touch implements [durable.FS]. It isn't recorded, because no guarantee depends on times.
func (r *Recorder) Touch(path string) error { return r.disk.Touch(path) }

// SyncFile implements [durable.FS].
func (r *Recorder) SyncFile(path string) error {
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpSyncFile, Path: path}, r.disk.SyncFile(path)
	})
}

// SyncDir implements [durable.FS]. It isn't recorded above the root.
func (r *Recorder) SyncDir(path string) error {
	if _, err := r.below(path); err != nil {
		return r.disk.SyncDir(path)
	}
	return r.do(path, func() (Op, error) {
		return Op{Kind: OpSyncDir, Path: path}, r.disk.SyncDir(path)
	})
}

// do performs an operation and records it if it succeeds. It rejects a path outside the root, which a replay
// would miss.
func (r *Recorder) do(path string, run func() (Op, error)) error {
	if _, err := r.below(path); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	op, err := run()
	if err != nil {
		return err
	}
	if op.Path, err = r.below(op.Path); err != nil {
		return err
	}
	r.ops = append(r.ops, op)
	return nil
}

// below returns path relative to the root.
func (r *Recorder) below(path string) (string, error) {
	rel, err := filepath.Rel(r.root, path)
	if err != nil {
		return "", err
	}
	rel = filepath.ToSlash(rel)
	if rel == ".." || strings.HasPrefix(rel, "../") {
		return "", fmt.Errorf("record: %s is not below %s", path, r.root)
	}
	return rel, nil
}
