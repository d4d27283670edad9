// Package fileheads stores the mutable state of uwf in files of the home directory, which people can read and edit:
//
//	threads.yaml   thread-id: head-hash       active threads
//	history.jsonl  {thread, workflow, head, status, completedAt}   ended threads
//	registry.yaml  workflow-name: hash
//	facts.jsonl    {thread, …}   facts of threads, in addition to their chains
//	removed.txt    thread-id     removed threads, so that a push can't restore them
//
// Invariants:
//   - each file is changed only under its lock (<home>/locks/), and a head only
//     by compare-and-swap. Lock order: thread (the engine's), threads, history;
//   - when a changing method returns nil, the change is durable; after an error,
//     the thread has either its old or its new state;
//   - only threads.yaml determines which threads are active: a thread in both files
//     is active. Ending one writes the history first, so an interruption leaves it
//     active;
//   - facts are written before the head of their thread. Losing them never loses
//     a thread.
//
// The two YAML files have one plain line per entry, sorted, below a checksum (table.go). A person who edits
// them deletes the checksum. Any order, quotes and comments are accepted; the next write restores the
// canonical form, with comment lines at the top.
package fileheads

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Heads accesses these files of a home directory. It reads them each time, because other processes write
// them as well; it is safe for concurrent use.
//
// In addition to the documented errors, its methods return disk errors, and a [*protocol.Error] with
// [protocol.CodeInvalid], file and line for unreadable content. Such a line affects only its own thread or
// workflow, and is never lost by a write.
type Heads struct {
	// Now is the clock. If it is set, files are read again only after they have changed: for servers, which would
	// otherwise read all threads of a home several times per page.
	Now func() time.Time

	dir        string
	fsys       durable.FS
	soundFacts atomic.Pointer[factsRead] // cached lines, valid while the file still starts with them

	threads cache[table]
	history cache[iter.Seq[line[heads.Ended]]]
	facts   cache[map[string]heads.Facts]
}

// Open returns the index of a home directory, which need not exist yet.
func Open(dir string, fsys durable.FS) *Heads { return &Heads{dir: dir, fsys: fsys} }

// Others opens all homes except own, which can have another spelling among them.
func Others(own string, homes []string, fsys durable.FS) map[string]heads.Heads {
	all := map[string]heads.Heads{}
	mine, err := os.Stat(own)
	for _, home := range homes {
		info, errHome := os.Stat(home)
		if home != own && (err != nil || errHome != nil || !os.SameFile(info, mine)) {
			all[home] = Open(home, fsys)
		}
	}
	return all
}

// The files, and the names of their locks without ".lock".
const (
	threadsFile  = "threads.yaml"
	historyFile  = "history.jsonl"
	registryFile = "registry.yaml"
	factsFile    = "facts.jsonl" // protected by the lock of the threads

	threadsLock  = "threads"
	historyLock  = "history"
	registryLock = "registry"
)

// locked calls change under a lock, after creating the home directory.
func (x *Heads) locked(ctx context.Context, name string, change func() error) (err error) {
	if err := durable.MkdirAll(x.fsys, x.dir, 0o700); err != nil {
		return err
	}
	held, err := Patiently(ctx, durable.Lock, filepath.Join(x.dir, "locks", name+".lock"))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, held.Unlock()) }()
	// Such a file might be a copy of all heads. Failing to remove it isn't an error.
	if file, ok := map[string]string{threadsLock: threadsFile, registryLock: registryFile}[name]; ok {
		_ = durable.RemoveTemps(x.fsys, x.path(file))
	}
	return change()
}

// longestWait bounds the time to wait for a lock of the index, as errLongWait says. Changes take milliseconds, so a
// longer holder is not making progress.
const longestWait = 2 * time.Minute

// errLongWait is the cause of a context in which waiting for a lock timed out.
var errLongWait = errors.New("for more than 2 minutes")

// Patiently takes a lock, unless that takes so long that its holder is not making progress.
func Patiently(ctx context.Context, lock func(context.Context, string) (*durable.Held, error), path string) (*durable.Held,
	error) {
	ctx, cancel := context.WithTimeoutCause(ctx, longestWait, errLongWait)
	defer cancel()
	held, err := lock(ctx, path)
	if errors.Is(err, errLongWait) {
		return nil, &protocol.Error{Code: protocol.CodeLocked, Message: err.Error(), Err: err}
	}
	return held, err
}

// invalid returns the error for an unreadable line of a file.
func invalid(path string, line int, reason string) error {
	e := &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%s:%d: %s", path, line, reason)}
	return e.Because("threads-damaged")
}

// cache holds what was read from files, for a [Heads] with a clock. It is valid while they are the same files.
type cache[T any] struct {
	last atomic.Pointer[cached[T]]
}

type cached[T any] struct {
	files []fs.FileInfo // nil: missing
	value T
}

// racy is the age from which a file cannot change again within the same timestamp.
const racy = time.Second

// of returns what read returns for files. Its callers share the value.
func (k *cache[T]) of(x *Heads, read func() (T, error), names ...string) (T, error) {
	if x.Now == nil {
		return read()
	}
	settled := true
	files := make([]fs.FileInfo, len(names))
	for i, name := range names {
		file, err := os.Stat(x.path(name)) // before reading: a later change is noticed the next time
		switch {
		case err == nil:
			files[i] = file
			settled = settled && x.Now().Sub(file.ModTime()) > racy
		case !errors.Is(err, fs.ErrNotExist):
			settled = false
		}
	}
	if last := k.last.Load(); last != nil && settled && slices.EqualFunc(files, last.files, sameFile) {
		return last.value, nil
	}
	value, err := read()
	if err == nil && settled {
		k.last.Store(&cached[T]{files, value})
	}
	return value, err
}

func sameFile(a, b fs.FileInfo) bool {
	if a == nil || b == nil {
		return a == b
	}
	return os.SameFile(a, b) && a.Size() == b.Size() && a.ModTime().Equal(b.ModTime())
}

// look is [Heads.read] of threads.yaml for callers that do not change it.
func (x *Heads) look(ctx context.Context) (*table, error) {
	t, err := x.threads.of(x, func() (table, error) {
		t, err := x.read(ctx, threadsFile)
		if err != nil {
			return table{}, err
		}
		return *t, nil
	}, threadsFile)
	return &t, err // a copy, because its methods parse it when needed
}
