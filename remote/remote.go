// Package remote is another place that holds threads: a directory, the far end of ssh,
// a database. It has the words that all of them share. Package wire speaks them over
// stdin and stdout to a helper program, and remotetest is the suite that every remote
// passes; see docs/remote-protocol.md.
//
// A remote is a stranger. It promises what is written here, and whoever asks it
// believes nothing: nodes are held against their hashes, and a head is followed only to
// a chain that is whole.
package remote

import (
	"context"
	"crypto/sha1"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"iter"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Bounds of one call. [PutAll], [GetAll], [MissingFrom] and their like divide what is
// more.
const (
	MaxHashes  = 1 << 16 // hashes or objects of a call
	MaxBatch   = 8 << 20 // bytes of the records of a Put; one record alone may be larger
	MaxFacts   = 1 << 20 // bytes of what is known of a thread, as JSON
	MaxHolder  = 256     // bytes of the name of whoever holds a lease
	MaxName    = 256     // bytes of a workflow's name
	MaxObject  = 256 << 20
	MaxNodes   = 1 << 24 // that a walk lists
	MinLease   = time.Second
	MaxLease   = 24 * time.Hour
	MaxThreads = 1 << 19 // that a list has
)

// Remote is safe for concurrent use, also by many processes. One that is at the end of a
// pipe does one thing at a time, the others wait: inside a loop over what a method
// yields, nothing else may be asked of it. Methods return the errors that they name,
// those of their medium, and [*FaultError] for an argument that is out of bounds.
type Remote interface {
	// Info says what is at the other end.
	Info(ctx context.Context) (Info, error)

	// Missing returns those of the hashes under which nothing is there, neither a node
	// nor a tombstone, in the order in which they were given.
	Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error)
	// Walk lists all that the roots lead to, types included, each node once and after
	// all that it needs. What is in have is left out, with what only leads on from
	// there. Error: [*MissingError].
	Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error]
	// Get yields the nodes in the order in which they were given. Error: [*MissingError].
	Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[Record, error]
	// Put makes nodes and tombstones durable, each hash once. What is there stays: a node that is
	// redacted there stays redacted, one that is whole stays whole, and different says
	// which of them were not as they were sent. Errors: [*cas.CollisionError],
	// [*cas.CorruptError].
	Put(ctx context.Context, records []Record) (different []cas.Hash, err error)

	// Thread returns where a thread stands; [heads.ErrNoThread].
	Thread(ctx context.Context, thread string) (State, error)
	// Threads yields threads, sorted by id.
	Threads(ctx context.Context, f Filter) iter.Seq2[State, error]
	// Swap moves a thread from where it must stand to where it stands from then on. It
	// is durable, or nothing has changed. Errors: [*ConflictError], [*FenceError],
	// [*LeasedError], [*MissingError] if the head leads to what is not there.
	Swap(ctx context.Context, s Swap) error

	// Take gives the lease of a thread to holder, for so long. Errors: [*LeasedError]
	// if anybody has it, holder included; [heads.ErrNoThread].
	Take(ctx context.Context, thread, holder string, duration time.Duration) (Lease, error)
	// Renew lets the lease with this fence last so long from now on; [*FenceError] if it
	// has ended, or is somebody else's.
	Renew(ctx context.Context, thread string, fence int64, duration time.Duration) (Lease, error)
	// Release ends the lease with this fence, if it lasts.
	Release(ctx context.Context, thread string, fence int64) error

	// Workflows returns all names, sorted.
	Workflows(ctx context.Context) ([]heads.Named, error)
	// Register lets a name stand for a workflow, if it stood for was; "": for none.
	// Errors: [*NameError]; [*MissingError].
	Register(ctx context.Context, name string, was, workflow cas.Hash) error

	// MissingObjects, GetObjects and PutObjects are Missing, Get and Put for the git
	// objects of files. Each object comes after what it names. [errors.ErrUnsupported]
	// where Info says so.
	MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error)
	GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[Object, error]
	PutObjects(ctx context.Context, objects []Object) error

	Close() error
}

// Info is what a remote says of itself.
type Info struct {
	Hash    cas.Algorithm `json:"hash"`
	Program string        `json:"program"` // name and version; for people
	Objects bool          `json:"objects,omitempty"`
	NowMs   int64         `json:"nowMs"` // by the clock that ends leases
}

// Record is a node as a store has it: the content of its file, or that of the tombstone
// in its place ([cas.MarshalFile], [cas.MarshalTombstone]). A tombstone that travels is
// not marked as foreign.
type Record struct {
	Hash cas.Hash
	File []byte
}

// State is where a thread stands.
type State struct {
	Thread string   `json:"thread"`
	Head   cas.Hash `json:"head"`
	Ended  *Ended   `json:"ended,omitempty"` // nil: it is active
	// Facts are what is known of it on every machine ([Shared]).
	Facts heads.Facts `json:"facts"`
	Lease *Lease      `json:"lease,omitempty"` // the one that lasts
	// Fault is why a list cannot show the thread: what the remote has of it is damaged. "": it can.
	// All else but Thread, which may be any text then, is not set.
	Fault string `json:"fault,omitempty"`
}

// Ended is how a thread ended.
type Ended struct {
	Workflow    cas.Hash        `json:"workflow"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // ms
}

// Filter says which threads are listed; the zero value: all.
type Filter struct {
	Active bool   `json:"active,omitempty"` // only those that are
	Ended  bool   `json:"ended,omitempty"`  // only those that have
	After  string `json:"after,omitempty"`  // only later ids
	Limit  int    `json:"limit,omitempty"`  // only so many; 0: all
}

// Swap is one change of a thread.
type Swap struct {
	Thread string `json:"thread"`
	// Was is where it must stand, and WasEnded whether it must have ended there; "": it
	// must not be known.
	Was      cas.Hash `json:"was,omitempty"`
	WasEnded bool     `json:"wasEnded,omitempty"`
	Head     cas.Hash `json:"head"`
	Ended    *Ended   `json:"ended,omitempty"`
	// Facts change what is known, as [heads.Heads.SetFacts] does. What concerns one
	// machine is left out ([Shared]).
	Facts heads.Facts `json:"facts"`
	// Fence is that of the lease that must last; 0: nobody may have one.
	Fence int64 `json:"fence,omitempty"`
}

// Lease keeps others from a thread until it ends by the remote's clock.
type Lease struct {
	Thread string `json:"thread"`
	Holder string `json:"holder"`
	Fence  int64  `json:"fence"`   // greater than that of every lease of the thread before; 0 in lists
	Until  int64  `json:"untilMs"` // by the remote's clock
	// LeftMs is how long it lasts from now: clocks differ.
	LeftMs int64 `json:"leftMs"`
}

// Object is a file, or the target of a link, or a directory, as git has it.
type Object struct {
	ID      protocol.Tree
	Kind    byte // [File] or [Directory]
	Content []byte
}

// Kinds of objects, as in bundles.
const (
	File      byte = 'f'
	Directory byte = 'd'
)

// TrustVariable is set in the environment of a helper if the user trusts whoever can write the
// remote (uwf remote add --trust).
const TrustVariable = "UWF_REMOTE_TRUST"

// Shared are the facts that travel. Where a thread works, where it was pushed, and
// whether it came from elsewhere concern the machine that says so.
func Shared(f heads.Facts) heads.Facts {
	f.Workspace, f.Remote, f.Imported, f.Agents, f.Doubt = nil, nil, nil, nil, nil
	return f
}

// Has reports whether a filter lets a thread through.
func (f Filter) Has(s State) bool {
	return s.Thread > f.After && (!f.Active || s.Ended == nil) && (!f.Ended || s.Ended != nil)
}

// ObjectID is the name that git gives to an object; function is sha1 or sha256.
func ObjectID(kind byte, content []byte, function string) protocol.Tree {
	word := "blob"
	if kind == Directory {
		word = "tree"
	}
	sum := sha1.New()
	if function == "sha256" {
		sum = sha256.New()
	}
	_, _ = fmt.Fprintf(sum, "%s %d\x00", word, len(content))
	_, _ = sum.Write(content)
	return protocol.Tree(function + ":" + hex.EncodeToString(sum.Sum(nil)))
}

// ConflictError means that a thread was not where the caller thought.
type ConflictError struct {
	Thread        string
	Want, Got     cas.Hash // "": not known
	WantEnd, Ends bool     // whether it should have ended, and has
}

// Error implements error.
func (e *ConflictError) Error() string {
	return fmt.Sprintf("thread %s has moved at the remote: it should be %s, and is %s", e.Thread,
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

// LeasedError means that somebody works on a thread.
type LeasedError struct{ Lease Lease }

// Error implements error.
func (e *LeasedError) Error() string {
	return fmt.Sprintf("%s works on thread %s, for %d ms from now at least", plaintext.Line(e.Lease.Holder),
		e.Lease.Thread, e.Lease.LeftMs)
}

// FenceError means that a lease has ended, or is somebody else's by now.
type FenceError struct {
	Thread string
	Fence  int64
}

// Error implements error.
func (e *FenceError) Error() string {
	return fmt.Sprintf("the lease %d of thread %s has ended: somebody else may work on it", e.Fence, e.Thread)
}

// MissingError means that a node or an object is not there.
type MissingError struct {
	Hash string // or a git object's name
}

// Error implements error.
func (e *MissingError) Error() string {
	return fmt.Sprintf("%s is not there", plaintext.Line(e.Hash))
}

// Is reports that it is one of [cas.ErrNotFound].
func (e *MissingError) Is(target error) bool { return target == cas.ErrNotFound }

// NameError means that a name stands for another workflow than the caller thought.
type NameError struct {
	Name      string
	Want, Got cas.Hash // "": for none
}

// Error implements error.
func (e *NameError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("the name %s stands for no workflow at the remote, not for %s", plaintext.Line(e.Name), e.Want)
	}
	return fmt.Sprintf("the name %s stands for the workflow %s at the remote", plaintext.Line(e.Name), e.Got)
}

// FaultError means that one side has said what the protocol does not allow.
type FaultError struct{ Problem string }

// Error implements error.
func (e *FaultError) Error() string { return plaintext.Line(e.Problem) }

// LimitError means that the other side's list does not end where every honest one has.
type LimitError struct {
	Most int64
	Of   string // what is counted, for people
}

// Error implements error.
func (e *LimitError) Error() string {
	return fmt.Sprintf("its list has more than %d %s: the rest was not read", e.Most, e.Of)
}

// Faultf is a [*FaultError].
func Faultf(format string, args ...any) error {
	return &FaultError{Problem: fmt.Sprintf(format, args...)}
}

// HashError means that a remote and the store here have different hash functions.
type HashError struct{ Remote, Here cas.Algorithm }

// Error implements error.
func (e *HashError) Error() string {
	return fmt.Sprintf("the remote has %s hashes and the store has %s: nodes cannot go from one to the other", e.Remote,
		e.Here)
}
