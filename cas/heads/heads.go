// Package heads is the one thing about a thread that changes: where it stands, how
// it has ended, and what is known of it besides its chain. It holds words only; who
// keeps them, in files or in a database, implements [Heads] and passes package
// headstest.
package heads

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/protocol"
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
	if e.Got == "" {
		return fmt.Sprintf("thread %s is not active: its head should be %s", e.Thread, e.Want)
	}
	if e.Want == "" {
		return fmt.Sprintf("thread %s has come here meanwhile: its head is %s", e.Thread, e.Got)
	}
	return fmt.Sprintf("head of thread %s moved: want %s, got %s", e.Thread, e.Want, e.Got)
}

// UnpublishedError means that a head has moved here, and that another place where the
// thread stands does not know of it.
type UnpublishedError struct{ Err error }

// Error implements error.
func (e *UnpublishedError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *UnpublishedError) Unwrap() error { return e.Err }

// Heads knows every thread of a home. It caches nothing that others may change, and
// is safe for concurrent use, also by other processes.
//
// When a method that changes something returns nil, the change is durable; when it
// returns an error, the thread is where it was or where it should go, never nowhere.
// Besides the errors that they name, the methods return those of their medium, and
// [*protocol.Error] for an entry that cannot be read. Such an entry stops nobody but
// its thread.
type Heads interface {
	// Head returns an active thread's head, or [ErrNoThread].
	Head(ctx context.Context, thread string) (protocol.Hash, error)
	// Heads yields the active threads, sorted by id, then an error for each entry
	// that cannot be read.
	Heads(ctx context.Context) iter.Seq2[Head, error]
	// Add adds an active thread with what is known of it; [ErrExists] if it is
	// active or has ended.
	Add(ctx context.Context, thread string, head protocol.Hash, facts Facts) error
	// AddAll adds active threads in one change: all of them, or if it errs none.
	AddAll(ctx context.Context, threads []New) error
	// Move moves a head from old to new; [*ConflictError] if it is not at old.
	Move(ctx context.Context, thread string, old, new protocol.Hash) error

	// Ended returns how a thread ended, or [ErrNoThread] if it is active or unknown.
	Ended(ctx context.Context, thread string) (Ended, error)
	// History yields the ended threads in the order in which they ended. One that
	// ends between a look at Heads and one at History is in both, never in neither.
	History(ctx context.Context) iter.Seq2[Ended, error]
	// Archive ends a thread whose head is e.Head; [*ConflictError] if it is not.
	Archive(ctx context.Context, e Ended) error
	// Reopen makes an ended thread active again at the head it ended with; e is what
	// Ended returned. Errors: [ErrExists] if it is active already, [ErrNoThread],
	// [*ConflictError] if it has ended elsewhere since.
	Reopen(ctx context.Context, e Ended, atMs int64) error

	// Facts returns what is known of a thread; nothing is no error.
	Facts(ctx context.Context, thread string) (Facts, error)
	// AllFacts returns what is known of all threads; most have no entry. With an
	// error for entries that cannot be read it returns what the others say.
	AllFacts(ctx context.Context) (map[string]Facts, error)
	// SetFacts adds to what is known of a thread: each field of the change that is
	// set replaces the one before.
	SetFacts(ctx context.Context, thread string, change Facts) error
}

// Placer is a [Heads] whose entries a person can look up.
type Placer interface {
	// ThreadPlace is where a thread's entry stands, such as file:line; "": nowhere.
	ThreadPlace(ctx context.Context, thread string) string
}

// Auditor is a [Heads] that can lose threads to damage, and notice it.
type Auditor interface {
	// CheckLost is an error if there are threads that it does not have any more.
	CheckLost(ctx context.Context) error
}

// Registry gives workflows their names.
type Registry interface {
	// Workflow returns the hash that a name stands for, or [ErrNoWorkflow].
	Workflow(ctx context.Context, name string) (protocol.Hash, error)
	// Workflows returns all names, sorted. With an error for an entry that cannot be
	// read it returns all the others.
	Workflows(ctx context.Context) ([]Named, error)
	// Register points a name at a hash.
	Register(ctx context.Context, name string, h protocol.Hash) error
}

// New is a thread to be added, with what is known of it.
type New struct {
	Head
	Facts Facts
}

// Head is an active thread.
type Head struct {
	Thread string
	Hash   protocol.Hash
}

// Ended is how a thread ended.
type Ended struct {
	Thread      string          `json:"thread"`
	Workflow    protocol.Hash   `json:"workflow"`
	Head        protocol.Hash   `json:"head"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // ms
}

// Named is an entry of the registry.
type Named struct {
	Name string
	Hash protocol.Hash
	// Problem says why nothing can be started by this name, as words that follow it;
	// "" if it can.
	Problem string
}
