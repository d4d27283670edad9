// Package heads is the one thing about a thread that changes: where it stands, how
// it has ended, and what is known of it besides its chain. It holds words only; who
// keeps them, in files or in a database, implements [Heads] and passes package
// headstest.
package heads

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"

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

// Facts is what is known of a thread besides its chain. A field that is not set is
// not known. Each line of facts.jsonl is one change: its fields take the place of
// those before, null takes one away, and what this program does not know stays.
type Facts struct {
	Imported  *Imported         `json:"imported,omitempty"`
	Title     *string           `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Fork      *Fork             `json:"fork,omitempty"`
	Parent    *Parent           `json:"parent,omitempty"`
	Attempts  map[string]int    `json:"attempts,omitempty"` // by "<head>/<role>"
	Workspace *Workspace        `json:"workspace,omitempty"`
	// Repository is that of the thread's files, as every clone of it knows it.
	Repository *Repository     `json:"repository,omitempty"`
	Undone     []protocol.Hash `json:"undone,omitempty"`
	Limits     *Limits         `json:"limits,omitempty"`
	// ParkedUntil is in ms; ParkedAt is the head at which the thread waits, "" if an older program
	// has noted it.
	ParkedUntil int64         `json:"parkedUntil,omitempty"`
	ParkedAt    protocol.Hash `json:"parkedAt,omitempty"`
	// FilesLeft says that a person has left the files as they were when the head moved.
	FilesLeft *FilesLeft `json:"filesLeft,omitempty"`
	// Redacted is what was redacted of the thread's files.
	Redacted *Redacted `json:"redacted,omitempty"`
	Remote   *Remote   `json:"remote,omitempty"`
	// Agents are those chosen by a person on this machine, by role or [AllRoles].
	Agents map[string]string `json:"agents,omitempty"`

	// Doubt names a line that cannot be read and that may have said where the thread
	// comes from; nil: there is none, or a later line says it.
	Doubt error `json:"-"`
}

// FilesLeft are files that are not those of a thread's head, on purpose.
type FilesLeft struct {
	Head protocol.Hash `json:"head"`           // at which they were left; what is noted of another head is history
	Tree protocol.Tree `json:"tree,omitempty"` // "": not known
	// Ahead: an undo has left them, so a redo need not write any.
	Ahead bool `json:"ahead,omitempty"`
}

// AllRoles is the key for every role that is not listed; it is no valid name of a role.
const AllRoles = "*"

// Imported says that a thread was brought in from elsewhere.
type Imported struct {
	From string `json:"from"` // the file, as it was named
	AtMs int64  `json:"atMs"`
	// Confirmed: a person has said in which directory it may work here.
	Confirmed bool `json:"confirmed,omitempty"`
	// Inherited: the thread itself was made here, as a fork of such a thread, or has
	// gone on elsewhere since.
	Inherited bool `json:"inherited,omitempty"`
	// Lost: a line that may have said where the thread comes from is gone, so it may
	// also have been made here.
	Lost bool `json:"lost,omitempty"`
}

// Limits are what people have said of the limits of one run: when it was started, and
// since. A field that is not set is not said.
type Limits struct {
	protocol.Limits
	// More is what was granted beyond the limits, whoever set those, and of how many runs somebody has
	// accepted that the cost is unknown.
	More protocol.Amount `json:"more,omitzero"`
	// Replaced is what the steps have cost that others took the place of. The chain
	// does not lead to them any more.
	Replaced Replaced `json:"replaced,omitzero"`
}

// Replaced are the sums of replaced steps.
type Replaced struct {
	Last   protocol.Hash    `json:"last"` // the newest of them
	Totals *protocol.Totals `json:"totals"`
	protocol.Unknown
}

// Fork is what a thread was forked from.
type Fork struct {
	Thread string        `json:"thread,omitempty"` // "": not known
	Step   protocol.Hash `json:"step"`
}

// Parent is the step whose part a thread is.
type Parent struct {
	Thread  string        `json:"thread"`
	Head    protocol.Hash `json:"head"`
	Role    string        `json:"role"`
	Key     string        `json:"key"`
	Attempt int           `json:"attempt"`
}

// Workspace is where a thread works on this machine. It takes the place of the
// directory that its start names.
type Workspace struct {
	Mode   string `json:"mode"` // "none": the directory as it is
	Root   string `json:"root"` // absolute
	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// Repository says which one a thread works in, whatever the machine.
type Repository struct {
	Base string `json:"base"` // commit at which the thread began
	// Tree is the state of the files that it began with; "": not known.
	Tree protocol.Tree `json:"tree,omitempty"`
	// Dir is where it works below the root, with slashes; "": there.
	Dir string `json:"dir,omitempty"`
}

// Remote is where a thread was last pushed to.
type Remote struct {
	Name string        `json:"name"`
	Head protocol.Hash `json:"head"`
	AtMs int64         `json:"atMs"`
}

// Redacted says what was redacted of a thread's files. It travels with the thread, so that whoever has
// the thread continues without the content. Each list has at most [MaxRedacted] entries.
type Redacted struct {
	Paths    []string        `json:"paths"`
	Contents []protocol.Tree `json:"contents"` // git's names of the files' contents
	// Instead are the states that stand for those that held the content.
	Instead map[protocol.Tree]protocol.Tree `json:"instead,omitempty"`
}

// MaxRedacted bounds what is known of a redaction: with 2,000 contents a thread's facts have 100 KB.
const MaxRedacted = 2000

// And returns what either of two redactions says. nil says nothing.
func (r *Redacted) And(other *Redacted) *Redacted {
	if r == nil || other == nil {
		return cmp.Or(r, other)
	}
	both := Redacted{
		Paths: union(r.Paths, other.Paths), Contents: union(r.Contents, other.Contents),
		Instead: maps.Clone(r.Instead),
	}
	for tree, by := range other.Instead {
		if _, known := both.Instead[tree]; known || len(both.Instead) == MaxRedacted {
			continue
		}
		if both.Instead == nil {
			both.Instead = map[protocol.Tree]protocol.Tree{}
		}
		both.Instead[tree] = by
	}
	return &both
}

func union[S ~string](a, b []S) []S {
	all := slices.Concat(a, b)
	slices.Sort(all)
	all = slices.Compact(all)
	return all[:min(len(all), MaxRedacted)]
}

// Foreign reports whether the thread comes from elsewhere, or may do so, and nobody
// has said yet where it may work here.
func (f Facts) Foreign() bool {
	return f.Doubt != nil || f.Imported != nil && !f.Imported.Confirmed
}

// StartedHere reports whether the thread was made in this home.
func (f Facts) StartedHere() bool {
	return !f.Unclear() && (f.Imported == nil || f.Imported.Inherited)
}

// Unclear reports whether nobody knows any more if the thread was made in this home.
func (f Facts) Unclear() bool { return f.Doubt != nil || f.Imported != nil && f.Imported.Lost }

// generations bounds how deep children are looked for.
const generations = 100

// Family are threads with all that play a part of one of them, or of one of their
// children.
func Family(facts map[string]Facts, threads []string) map[string]bool {
	family := make(map[string]bool, len(threads))
	for _, id := range threads {
		family[id] = true
	}
	if len(family) == 0 {
		return family
	}
	var found []string
	for id, f := range facts {
		for range generations {
			if f.Parent == nil {
				break
			}
			if family[f.Parent.Thread] {
				found = append(found, id)
				break
			}
			f = facts[f.Parent.Thread]
		}
	}
	for _, id := range found {
		family[id] = true
	}
	return family
}

// RootOf is the thread that is nobody's child, and of which a thread plays a part of a
// part; the thread itself, if it plays none.
func RootOf(facts map[string]Facts, thread string) string {
	for range generations {
		parent := facts[thread].Parent
		if parent == nil {
			break
		}
		thread = parent.Thread
	}
	return thread
}

// Root is the thread at the top of a family, found by reading the facts of those above.
func Root(ctx context.Context, x Heads, thread string) (string, error) {
	for range generations {
		facts, err := x.Facts(ctx, thread)
		if err != nil || facts.Parent == nil {
			return thread, err
		}
		thread = facts.Parent.Thread
	}
	return thread, nil
}

// Standing is where a thread stands.
type Standing struct {
	Head protocol.Hash
	End  *Ended // nil: it is active
}

// Find finds a thread, active or ended; the error is [ErrNoThread] if there is none. It looks
// twice, because a thread may be reopened between the looks at the active and the ended ones.
func Find(ctx context.Context, x Heads, thread string) (at Standing, err error) {
	for range 2 {
		if at.Head, err = x.Head(ctx, thread); !errors.Is(err, ErrNoThread) {
			return at, err
		}
		ended, lost := x.Ended(ctx, thread)
		if lost == nil {
			return Standing{Head: ended.Head, End: &ended}, nil
		}
		if err = lost; !errors.Is(err, ErrNoThread) {
			break
		}
	}
	return Standing{}, err
}

// Standings returns every thread, active and ended. With an error for lines that
// cannot be read it returns all the others.
func Standings(ctx context.Context, x Heads) (map[string]Standing, error) {
	all := map[string]Standing{}
	var faults []error
	for e, err := range x.History(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[e.Thread] = Standing{Head: e.Head, End: &e}
	}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[h.Thread] = Standing{Head: h.Hash}
	}
	// One that ended between the two looks was active at the first and is not at
	// the second.
	for e, err := range x.History(ctx) {
		if _, known := all[e.Thread]; err == nil && !known {
			all[e.Thread] = Standing{Head: e.Head, End: &e}
		}
	}
	return all, errors.Join(faults...)
}
