// Package index keeps the mutable part of uwf: three files under the home
// directory that a person can read and edit.
//
//	threads.yaml   thread-id: head-hash       active threads
//	history.jsonl  {thread, workflow, head, status, completedAt}   ended threads, the last line of a thread wins
//	registry.yaml  workflow-name: hash
//
// Each is changed only under its lock, and a head only by compare-and-swap. A
// thread in both files is active: it is archived by appending to the history
// first. Lock order: thread, threads, history.
package index

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// The ways in which a change is refused.
var (
	ErrNoThread   = errors.New("no such thread")
	ErrNoWorkflow = errors.New("no such workflow")
	ErrExists     = errors.New("exists already")
)

// ConflictError means that a head was not what the caller thought.
type ConflictError struct {
	Thread    string
	Want, Got protocol.Hash // Got "": the thread is not active
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("head of thread %s moved: want %s, got %s", e.Thread, e.Want, e.Got)
}

// Index is the three files of a home directory. It caches nothing: other processes write too.
type Index struct{ _ struct{} }

// Open returns the index of a home directory, which need not exist yet.
func Open(dir string, fsys durable.FS) *Index { panic("unwritten") }

// Head is an active thread.
type Head struct {
	Thread string
	Hash   protocol.Hash
}

// Ended is a line of the history.
type Ended struct {
	Thread      string          `json:"thread"`
	Workflow    protocol.Hash   `json:"workflow"`
	Head        protocol.Hash   `json:"head"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // ms
}

// Head returns an active thread's head, or ErrNoThread.
func (x *Index) Head(ctx context.Context, thread string) (protocol.Hash, error) { panic("unwritten") }

// Heads yields the active threads, sorted by id. A line that cannot be read is an error with its number, and the listing goes on.
func (x *Index) Heads(ctx context.Context) iter.Seq2[Head, error] { panic("unwritten") }

// Add adds an active thread; ErrExists if it is active or ended.
func (x *Index) Add(ctx context.Context, thread string, head protocol.Hash) error { panic("unwritten") }

// Move moves a head from old to new; [*ConflictError] if it is not at old.
func (x *Index) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	panic("unwritten")
}

// Archive ends a thread whose head is e.Head; [*ConflictError] if it is not.
func (x *Index) Archive(ctx context.Context, e Ended) error { panic("unwritten") }

// Reopen makes an ended thread active again at the head it ended with; e is its history line.
func (x *Index) Reopen(ctx context.Context, e Ended, atMs int64) error { panic("unwritten") }

// Ended returns the newest history line of a thread that is not active, or ErrNoThread.
func (x *Index) Ended(ctx context.Context, thread string) (Ended, error) { panic("unwritten") }

// History yields one line per ended thread, in the order they ended.
func (x *Index) History(ctx context.Context) iter.Seq2[Ended, error] { panic("unwritten") }

// Workflow returns the hash that a name stands for, or ErrNoWorkflow.
func (x *Index) Workflow(ctx context.Context, name string) (protocol.Hash, error) { panic("unwritten") }

// Workflows returns the registry, sorted by name.
func (x *Index) Workflows(ctx context.Context) ([]Named, error) { panic("unwritten") }

// Register points a name at a hash.
func (x *Index) Register(ctx context.Context, name string, h protocol.Hash) error { panic("unwritten") }

// Named is an entry of the registry.
type Named struct {
	Name string
	Hash protocol.Hash
}
