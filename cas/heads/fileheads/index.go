// Package fileheads keeps the mutable part of uwf: four files under the home
// directory that a person can read and edit.
//
//	threads.yaml   thread-id: head-hash       active threads
//	history.jsonl  {thread, workflow, head, status, completedAt}   ended threads
//	registry.yaml  workflow-name: hash
//	facts.jsonl    {thread, …}   what is known of threads besides their chains
//
// Invariants:
//   - each file is changed only under its lock (<home>/locks/), and a head only
//     by compare-and-swap. Lock order: thread (the engine's), threads, history;
//   - when a method that changes something returns nil, the change is durable;
//     when it returns an error, the thread is where it was or where it should
//     go, never nowhere;
//   - threads.yaml alone says which threads are active: a thread in both files
//     is. Ending one writes the history first, so a cut in between leaves it
//     active;
//   - facts are written before the head of the thread that they are about. If they
//     are lost, no thread is.
//
// The two YAML files are written one plain line per entry, sorted, below a checksum
// (table.go). A person who edits them deletes the checksum. Any order, quotes and comments
// are read; the next write puts such a file into our form again, its comment lines at the top.
package fileheads

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Heads is the four files of a home directory. Each look reads them, because other
// processes write too; it is safe for concurrent use.
//
// Besides the errors that they name, its methods return those of the disk, and
// a [*protocol.Error] with [protocol.CodeInvalid] that names file and line where
// a file says something that cannot be read. Such a line stops nobody but the
// thread or workflow that it stands for, and is never lost by a write.
type Heads struct {
	dir  string
	fsys durable.FS
	kept atomic.Pointer[factsRead] // what lines of facts say, as long as they are there
}

// Open returns the index of a home directory, which need not exist yet.
func Open(dir string, fsys durable.FS) *Heads { return &Heads{dir: dir, fsys: fsys} }

// The files, and the names of their locks without ".lock".
const (
	threadsFile  = "threads.yaml"
	historyFile  = "history.jsonl"
	registryFile = "registry.yaml"
	factsFile    = "facts.jsonl" // under the lock of the threads

	threadsLock  = "threads"
	historyLock  = "history"
	registryLock = "registry"
)

// locked runs change under a lock, with the home directory in place.
func (x *Heads) locked(ctx context.Context, name string, change func() error) (err error) {
	if err := durable.MkdirAll(x.fsys, x.dir, 0o700); err != nil {
		return err
	}
	held, err := x.lock(ctx, filepath.Join(x.dir, "locks", name+".lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	// Such a file can be a copy of all heads; if it stays, that is no reason to stop.
	if file, ok := map[string]string{threadsLock: threadsFile, registryLock: registryFile}[name]; ok {
		_ = durable.RemoveTemps(x.fsys, x.path(file))
	}
	return change()
}

// longestWait bounds how long a lock of the index is waited for. Changes take
// milliseconds; whoever holds one so long is not at work.
const longestWait = 2 * time.Minute

// errLongWait is the cause of a context in which a lock was waited for too long.
var errLongWait = fmt.Errorf("for longer than %s", longestWait)

func (x *Heads) lock(ctx context.Context, path string) (*durable.Held, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestWait, errLongWait)
	defer cancel()
	held, err := durable.Lock(ctx, path)
	if errors.Is(err, errLongWait) {
		return nil, &protocol.Error{Code: protocol.CodeLocked, Message: err.Error(), Err: err}
	}
	return held, err
}

// invalid is the error for a line of a file that cannot be read.
func invalid(path string, line int, reason string) error {
	return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s:%d: %s", path, line, reason)}
}
