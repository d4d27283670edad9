// Package remote defines remotes, which are other places that hold threads: a directory, a machine reached
// over ssh, or a database. Package wire implements the protocol with helper programs over stdin and stdout,
// and remotetest is a conformance test for remotes; see docs/remote-protocol.md.
//
// A remote isn't trusted. Callers verify nodes against their hashes, and follow a head only if its chain is
// complete.
package remote

import (
	"context"
	"fmt"
	"iter"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Limits of one call. [PutAll], [GetAll] and the like split larger requests.
const (
	MaxHashes  = 1 << 16 // hashes or objects per call
	MaxBatch   = 8 << 20 // bytes of the records in a Put; a single record can be larger
	MaxFacts   = 1 << 20 // bytes of a thread's facts as JSON
	MaxHolder  = 256     // bytes of the name of a lease's holder
	MaxName    = 256     // bytes of a workflow's name
	MaxNodes   = 1 << 24 // nodes listed by a walk
	MinLease   = time.Second
	MaxLease   = 24 * time.Hour
	MaxThreads = 1 << 19 // threads in a list
	MaxState   = 64      // bytes of the state of a list
)

// Remote is a remote. It is safe for concurrent use, also by many processes. A remote at the end of a pipe
// handles one call at a time: a loop over a yielded sequence must not call other methods. Methods return the
// documented errors, errors of the transport, and [*FaultError] for invalid arguments.
type Remote interface {
	// Info describes the remote.
	Info(ctx context.Context) (Info, error)

	// Missing returns the hashes for which the remote has neither a node nor a tombstone, in the order given.
	Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error)
	// Walk lists all nodes reachable from roots, including types, each once and after the nodes that it
	// needs. It omits the nodes in have and what is only reachable through them. The error is a
	// [*MissingError].
	Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error]
	// Get yields the nodes in the order given. The error is a [*MissingError].
	Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[Record, error]
	// Put makes nodes and tombstones durable; each hash must occur once. Existing nodes don't change: a
	// redacted node stays redacted and an intact one stays intact. different lists those that differ from
	// what was sent. Errors are [*cas.CollisionError] and [*cas.CorruptError].
	Put(ctx context.Context, records []Record) (different []cas.Hash, err error)

	// Thread returns the state of a thread. Errors are [heads.ErrNoThread], and [*GoneError] if the thread was
	// removed.
	Thread(ctx context.Context, thread string) (State, error)
	// Threads yields the threads that match the filter, sorted by ID.
	Threads(ctx context.Context, f Filter) iter.Seq2[State, error]
	// Swap moves a thread by compare-and-swap. The change is atomic and durable. Errors are [*ConflictError],
	// [*FenceError], [*LeasedError], [*MissingError] if a node reachable from the head is missing, and
	// [*GoneError] if the thread or its parent was removed.
	Swap(ctx context.Context, s Swap) error

	// Take gives holder the lease of a thread for a duration. Errors are [*LeasedError] if anyone has the
	// lease, including holder, [heads.ErrNoThread], and [*GoneError].
	Take(ctx context.Context, thread, holder string, duration time.Duration) (Lease, error)
	// Renew extends the lease with this fencing token, counted from now. The error is a [*FenceError] if the
	// lease has expired or another client has it.
	Renew(ctx context.Context, thread string, fence int64, duration time.Duration) (Lease, error)
	// Release ends the lease with this fencing token, unless it has expired.
	Release(ctx context.Context, thread string, fence int64) error

	// Workflows returns all names, sorted.
	Workflows(ctx context.Context) ([]heads.Named, error)
	// Register sets the workflow of a name, if the current one is was ("" for none). Errors are [*NameError]
	// and [*MissingError].
	Register(ctx context.Context, name string, was, workflow cas.Hash) error

	// MissingObjects, GetObjects and PutObjects correspond to Missing, Get and Put for the git objects of
	// files. Each object must come after those that it refers to. They return [errors.ErrUnsupported] if
	// Info.Objects is false.
	MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error)
	GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[Object, error]
	PutObjects(ctx context.Context, objects []Object) error

	// Redactions returns the nodes that the remote's owner has redacted, and the state of this list. If the list
	// is still in the state known, it returns none. It returns [errors.ErrUnsupported] if the remote keeps no
	// such list.
	Redactions(ctx context.Context, known string) (list []Redaction, state string, err error)

	Close() error
}

// Redaction is a node that the owner of a remote has redacted.
type Redaction struct {
	Hash   cas.Hash `json:"hash"`
	Thread string   `json:"thread,omitempty"` // "" if it isn't known
	Reason string   `json:"reason,omitempty"`
}

// Info describes a remote.
type Info struct {
	Hash    cas.Algorithm `json:"hash"`
	Program string        `json:"program"` // name and version, for display
	Objects bool          `json:"objects,omitempty"`
	NowMs   int64         `json:"nowMs"` // time on the clock that leases use
}

// Record is a node as a store keeps it: the content of its file, or of its tombstone's file
// ([cas.MarshalFile], [cas.MarshalTombstone]). A transferred tombstone is not marked as foreign.
type Record struct {
	Hash cas.Hash
	File []byte
}

// State is the state of a thread.
type State struct {
	Thread string   `json:"thread"`
	Head   cas.Hash `json:"head"`
	Ended  *Ended   `json:"ended,omitempty"` // nil if it is active
	// Facts holds the facts that all machines share ([Shared]).
	Facts heads.Facts `json:"facts"`
	Lease *Lease      `json:"lease,omitempty"` // current lease
	// Fault is why a list cannot show the thread: the remote's data is damaged. "" means none. If it is set,
	// only Thread is set in addition, which may be any text.
	Fault string `json:"fault,omitempty"`
}

// Ended describes how a thread ended.
type Ended struct {
	Workflow    cas.Hash        `json:"workflow"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // Unix milliseconds
}

// Filter selects threads; the zero value selects all.
type Filter struct {
	Active bool   `json:"active,omitempty"` // only active threads
	Ended  bool   `json:"ended,omitempty"`  // only ended threads
	After  string `json:"after,omitempty"`  // only greater IDs
	Limit  int    `json:"limit,omitempty"`  // maximum number; 0 means all
}

// Swap is a change of a thread.
type Swap struct {
	Thread string `json:"thread"`
	// Was is the required current head, and WasEnded whether the thread must have ended. "" means that the
	// thread must not exist.
	Was      cas.Hash `json:"was,omitempty"`
	WasEnded bool     `json:"wasEnded,omitempty"`
	Head     cas.Hash `json:"head"`
	Ended    *Ended   `json:"ended,omitempty"`
	// Facts changes the facts, as [heads.Heads.SetFacts] does. Facts that concern one machine are ignored
	// ([Shared]).
	Facts heads.Facts `json:"facts"`
	// Fence is the fencing token of the required lease; 0 requires that there is no lease.
	Fence int64 `json:"fence,omitempty"`
}

// Lease gives one client exclusive access to a thread until it expires.
type Lease struct {
	Thread string `json:"thread"`
	Holder string `json:"holder"`
	Fence  int64  `json:"fence"`   // fencing token, greater than those of all earlier leases of the thread; 0 in lists
	Until  int64  `json:"untilMs"` // expiry on the remote's clock
	// LeftMs is the time until it expires, because clocks differ.
	LeftMs int64 `json:"leftMs"`
}

// Object is a git object: a file, the target of a symbolic link, or a directory.
type Object struct {
	ID      protocol.Tree
	Kind    byte // [gitobject.File] or [gitobject.Directory]
	Content []byte
}

// TrustVariable is set in the environment of a helper if the user trusts everyone who can write to the remote
// (uwf remote add --trust).
const TrustVariable = "UWF_REMOTE_TRUST"

// Shared returns the facts that are transferred. A thread's directory, its remotes, and whether it was
// imported concern only one machine.
func Shared(f heads.Facts) heads.Facts {
	f.Workspace, f.Remote, f.Imported, f.Agents, f.Doubt = nil, nil, nil, nil, nil
	return f
}

// Has reports whether a thread matches the filter.
func (f Filter) Has(s State) bool {
	return s.Thread > f.After && (!f.Active || s.Ended == nil) && (!f.Ended || s.Ended != nil)
}

// ConflictError means that a thread's state differs from the expected one.
type ConflictError struct {
	Thread        string
	Want, Got     cas.Hash // "" means that the thread doesn't exist
	WantEnd, Ends bool     // expected and actual: whether it has ended
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("thread %s has moved on the remote: want %s, got %s", e.Thread,
		place(e.Want, e.WantEnd), place(e.Got, e.Ends))
}

func place(h cas.Hash, ended bool) string {
	switch {
	case h == "":
		return "unknown"
	case ended:
		return "ended at " + string(h)
	}
	return "active at " + string(h)
}

// LeasedError means that another client has the lease of a thread.
type LeasedError struct{ Lease Lease }

func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s has leased thread %s for another %d ms", plaintext.Line(e.Lease.Holder),
		e.Lease.Thread, e.Lease.LeftMs)
}

// FenceError means that a lease has expired or belongs to another client now.
type FenceError struct {
	Thread string
	Fence  int64
}

func (e *FenceError) Error() string {
	return fmt.Sprintf("lease %d of thread %s has expired; another worker may have it", e.Fence, e.Thread)
}

// MissingError means that a node or an object is missing.
type MissingError struct {
	Hash string // or the ID of a git object
}

func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is missing", plaintext.Line(e.Hash))
}

// Is reports whether target is [cas.ErrNotFound].
func (e *MissingError) Is(target error) bool { return target == cas.ErrNotFound }

// GoneError means that a thread was removed from the remote, which doesn't accept it again.
type GoneError struct{ Thread string }

func (e *GoneError) Error() string {
	return fmt.Sprintf("thread %s was removed from the remote", plaintext.Line(e.Thread))
}

// NameError means that a name refers to another workflow than expected.
type NameError struct {
	Name      string
	Want, Got cas.Hash // "" means none
}

func (e *NameError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("the name %s has no workflow on the remote, want %s", plaintext.Line(e.Name), e.Want)
	}
	return fmt.Sprintf("the name %s refers to workflow %s on the remote", plaintext.Line(e.Name), e.Got)
}

// FaultError means that one side has violated the protocol.
type FaultError struct{ Problem string }

func (e *FaultError) Error() string { return plaintext.Line(e.Problem) }

// LimitError means that the other side's list exceeds a limit that no valid list reaches.
type LimitError struct {
	Most int64
	Of   string // counted items, for display
}

func (e *LimitError) Error() string {
	return fmt.Sprintf("its list has more than %d %s; the rest was not read", e.Most, e.Of)
}

// Faultf returns a [*FaultError].
func Faultf(format string, args ...any) error {
	return &FaultError{Problem: fmt.Sprintf(format, args...)}
}

// HashError means that a remote and the store here have different hash functions.
type HashError struct{ Remote, Here cas.Algorithm }

func (e *HashError) Error() string {
	return fmt.Sprintf("the remote has %s hashes, but the store has %s; nodes cannot be copied", e.Remote,
		e.Here)
}
