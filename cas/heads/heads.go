// Package heads defines the mutable state of a thread: its head, how it ended, and facts that aren't in its
// chain. Implementations of [Heads] store it in files or a database; package headstest is their test suite.
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

// Errors of a rejected change.
var (
	ErrNoThread   = errors.New("no such thread")
	ErrNoWorkflow = errors.New("no such workflow")
	ErrExists     = errors.New("already exists")
)

// ConflictError means that a head differs from the caller's expectation.
type ConflictError struct {
	Thread    string
	Want, Got protocol.Hash // Got is "" if the thread isn't active
}

func (e *ConflictError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("thread %s is not active; want head %s", e.Thread, e.Want)
	}
	if e.Want == "" {
		return fmt.Sprintf("thread %s was just added: its head is %s", e.Thread, e.Got)
	}
	return fmt.Sprintf("head of thread %s moved: want %s, got %s", e.Thread, e.Want, e.Got)
}

// UnpublishedError means that a head has moved here, but another place that stores the thread wasn't updated.
type UnpublishedError struct{ Err error }

func (e *UnpublishedError) Error() string { return e.Err.Error() }

func (e *UnpublishedError) Unwrap() error { return e.Err }

// Heads stores all threads of a home. It doesn't cache state that others can change, and is safe for
// concurrent use, including by other processes.
//
// When a changing method returns nil, the change is durable; after an error, the thread has either its old or
// its new state. In addition to the documented errors, methods return those of their medium, and a
// [*protocol.Error] for an unreadable entry, which affects only its own thread.
type Heads interface {
	// Head returns an active thread's head, or [ErrNoThread].
	Head(ctx context.Context, thread string) (protocol.Hash, error)
	// Heads yields the active threads, sorted by id, followed by an error for each unreadable entry.
	Heads(ctx context.Context) iter.Seq2[Head, error]
	// Add adds an active thread with its facts; [ErrExists] if it is active or has ended.
	Add(ctx context.Context, thread string, head protocol.Hash, facts Facts) error
	// AddAll adds active threads atomically.
	AddAll(ctx context.Context, threads []New) error
	// Move moves a head from old to new; [*ConflictError] if the head isn't old.
	Move(ctx context.Context, thread string, old, new protocol.Hash) error

	// Ended returns how a thread ended, or [ErrNoThread] if it is active or unknown.
	Ended(ctx context.Context, thread string) (Ended, error)
	// History yields the ended threads in the order in which they ended. A thread that ends between reading
	// Heads and History is in both, never in neither.
	History(ctx context.Context) iter.Seq2[Ended, error]
	// Archive ends a thread whose head is e.Head; [*ConflictError] if it is not.
	Archive(ctx context.Context, e Ended) error
	// Reopen reactivates an ended thread at its last head; e is the result of Ended. Errors: [ErrExists] if
	// it is already active, [ErrNoThread], [*ConflictError] if it has ended differently since.
	Reopen(ctx context.Context, e Ended, atMs int64) error

	// Facts returns the facts of a thread. Having none is not an error.
	Facts(ctx context.Context, thread string) (Facts, error)
	// AllFacts returns the facts of all threads; most have no entry. If some entries are unreadable, it
	// returns an error together with the others.
	AllFacts(ctx context.Context) (map[string]Facts, error)
	// SetFacts updates the facts of a thread: each field set in change replaces the previous value.
	SetFacts(ctx context.Context, thread string, change Facts) error
}

// Placer is implemented by [Heads] whose entries a person can look up.
type Placer interface {
	// ThreadPlace returns the location of a thread's entry, such as file:line, or "".
	ThreadPlace(ctx context.Context, thread string) string
}

// Auditor is implemented by [Heads] that can detect threads lost by damage.
type Auditor interface {
	// CheckLost returns an error if threads were lost.
	CheckLost(ctx context.Context) error
}

// Registry maps names to workflows.
type Registry interface {
	// Workflow returns the hash of a name, or [ErrNoWorkflow].
	Workflow(ctx context.Context, name string) (protocol.Hash, error)
	// Workflows returns all names, sorted. If some entries are unreadable, it returns an error together with
	// the others.
	Workflows(ctx context.Context) ([]Named, error)
	// Register sets the hash of a name.
	Register(ctx context.Context, name string, h protocol.Hash) error
}

// Index lists threads and workflows.
type Index interface {
	Heads
	Registry
}

// New is a thread to add, with its facts.
type New struct {
	Head
	Facts Facts
}

// Adoption sets a thread to its state elsewhere.
type Adoption struct {
	Thread string
	Was    protocol.Hash // its head here, active or ended; "" if new
	Head   protocol.Hash
	End    *Ended // how it ended; nil if active
	Facts  Facts  // facts to add
}

// Head is an active thread.
type Head struct {
	Thread string
	Hash   protocol.Hash
}

// Ended describes how a thread ended.
type Ended struct {
	Thread      string          `json:"thread"`
	Workflow    protocol.Hash   `json:"workflow"`
	Head        protocol.Hash   `json:"head"`
	Status      protocol.Status `json:"status"`
	CompletedAt int64           `json:"completedAt"` // ms, at most LastMs
}

// LastMs is the end of the year 9999.
const LastMs = 253_402_300_799_999

// Check returns an error if a thread can't have ended so.
func (e Ended) Check() error {
	switch {
	case !e.Status.Ends():
		return fmt.Errorf("a thread cannot end with status %q", e.Status)
	case !e.Head.Valid():
		return fmt.Errorf("head %q is not a hash", e.Head)
	case e.Workflow != "" && !e.Workflow.Valid(): // a damaged thread can also be ended
		return fmt.Errorf("workflow %q is not a hash", e.Workflow)
	case e.CompletedAt < 0 || e.CompletedAt > LastMs:
		return fmt.Errorf("invalid completedAt %d: want milliseconds", e.CompletedAt)
	}
	return nil
}

// Named is an entry of the registry.
type Named struct {
	Name string
	Hash protocol.Hash
	// Problem explains why nothing can be started by this name, as words that follow the name; "" if it can.
	Problem string
}

// Facts contains what is known about a thread in addition to its chain. An unset field is unknown. Each line
// of facts.jsonl is one change: its fields replace earlier values, null removes one, and fields unknown to
// this program are preserved.
type Facts struct {
	Imported  *Imported         `json:"imported,omitempty"`
	Title     *string           `json:"title,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	Fork      *Fork             `json:"fork,omitempty"`
	Parent    *Parent           `json:"parent,omitempty"`
	Attempts  map[string]int    `json:"attempts,omitempty"` // by "<head>/<role>"
	Workspace *Workspace        `json:"workspace,omitempty"`
	// Repository identifies the repository of the thread's files in any clone.
	Repository *Repository     `json:"repository,omitempty"`
	Undone     []protocol.Hash `json:"undone,omitempty"`
	Limits     *Limits         `json:"limits,omitempty"`
	// ParkedUntil is in ms; ParkedAt is the head at which the thread waits, "" if set by an older program.
	ParkedUntil int64         `json:"parkedUntil,omitempty"`
	ParkedAt    protocol.Hash `json:"parkedAt,omitempty"`
	// FilesLeft means that a person kept the files unchanged when the head moved.
	FilesLeft *FilesLeft `json:"filesLeft,omitempty"`
	// Redacted lists what was redacted from the thread's files.
	Redacted *Redacted `json:"redacted,omitempty"`
	Remote   *Remote   `json:"remote,omitempty"`
	// Agents are the agents chosen by a person on this machine, by role or [AllRoles].
	Agents map[string]string `json:"agents,omitempty"`

	// Doubt describes an unreadable line that might have contained the thread's origin; nil if there is none,
	// or a later line contains it.
	Doubt error `json:"-"`
}

// FilesLeft describes files that intentionally differ from those of a thread's head.
type FilesLeft struct {
	Head protocol.Hash `json:"head"`           // head at that time; for another head it no longer applies
	Tree protocol.Tree `json:"tree,omitempty"` // "": not known
	// Ahead means that an undo kept them, so a redo needn't write any.
	Ahead bool `json:"ahead,omitempty"`
}

// AllRoles is the key for every role that isn't listed; it isn't a valid role name.
const AllRoles = "*"

// Imported means that a thread was imported.
type Imported struct {
	From string `json:"from"` // the file, as named by the user
	AtMs int64  `json:"atMs"`
	// Confirmed means that a person has confirmed in which directory it can work.
	Confirmed bool `json:"confirmed,omitempty"`
	// Inherited means that the thread itself was created here, as a fork of an imported thread, or has
	// continued elsewhere since.
	Inherited bool `json:"inherited,omitempty"`
	// Lost means that a line that might have contained the thread's origin is lost, so it can also have been
	// created here.
	Lost bool `json:"lost,omitempty"`
}

// Limits contains the limits that people have set for one run, at its start and later. An unset field has no
// override.
type Limits struct {
	protocol.Limits
	// More is the amount granted beyond the limits, and the number of runs with unknown cost that a person
	// has accepted.
	More protocol.Amount `json:"more,omitzero"`
	// Replaced is the usage of replaced steps, which are no longer in the chain.
	Replaced Replaced `json:"replaced,omitzero"`
}

// Replaced sums the usage of replaced steps.
type Replaced struct {
	Last   protocol.Hash    `json:"last"` // the newest of them
	Totals *protocol.Totals `json:"totals"`
	protocol.Unknown
}

// Fork is the origin of a forked thread.
type Fork struct {
	Thread string        `json:"thread,omitempty"` // "": unknown
	Step   protocol.Hash `json:"step"`
}

// Parent is the step whose part a thread plays.
type Parent struct {
	Thread  string        `json:"thread"`
	Head    protocol.Hash `json:"head"`
	Role    string        `json:"role"`
	Key     string        `json:"key"`
	Attempt int           `json:"attempt"`
}

// Workspace is the thread's directory on this machine. It replaces the directory in its start.
type Workspace struct {
	Mode   string `json:"mode"` // "none": the directory unchanged
	Root   string `json:"root"` // absolute
	Repo   string `json:"repo,omitempty"`
	Base   string `json:"base,omitempty"`
	Branch string `json:"branch,omitempty"`
}

// Repository identifies a thread's repository on any machine.
type Repository struct {
	Base string `json:"base"` // commit at the thread's start
	// Tree is the file tree at its start; "" if unknown.
	Tree protocol.Tree `json:"tree,omitempty"`
	// Dir is the working directory relative to the root, with slashes; "" for the root.
	Dir string `json:"dir,omitempty"`
}

// Remote is the remote to which a thread was last pushed.
type Remote struct {
	Name string        `json:"name"`
	Head protocol.Hash `json:"head"`
	AtMs int64         `json:"atMs"`
}

// Redacted lists what was redacted from a thread's files. It is exported with the thread, so that others also
// continue without the content. Each list has at most [MaxRedacted] entries.
type Redacted struct {
	Paths    []string        `json:"paths"`
	Contents []protocol.Tree `json:"contents"` // git's names of the files' contents
	// Instead maps redacted trees to their substitutes.
	Instead map[protocol.Tree]protocol.Tree `json:"instead,omitempty"`
}

// MaxRedacted bounds each list: with 2,000 contents a thread's facts take 100 KB.
const MaxRedacted = 2000

// And returns the union of two redactions, either of which can be nil.
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

// Foreign reports whether the thread was, or might have been, imported, and nobody has confirmed yet where it
// can work.
func (f Facts) Foreign() bool {
	return f.Doubt != nil || f.Imported != nil && !f.Imported.Confirmed
}

// StartedHere reports whether the thread was created in this home.
func (f Facts) StartedHere() bool {
	return !f.Unclear() && (f.Imported == nil || f.Imported.Inherited)
}

// Unclear reports whether it is unknown if the thread was created in this home.
func (f Facts) Unclear() bool { return f.Doubt != nil || f.Imported != nil && f.Imported.Lost }

// Generations bounds the depth of children. Damaged facts can make a thread its own ancestor.
const Generations = 100

// Ancestors returns a thread's ancestors, nearest first.
func Ancestors(facts map[string]Facts, thread string) (above []string) {
	for at := facts[thread].Parent; at != nil && len(above) < Generations; at = facts[at.Thread].Parent {
		above = append(above, at.Thread)
	}
	return above
}

// Family returns threads with all their descendants.
func Family(facts map[string]Facts, threads []string) map[string]bool {
	family := make(map[string]bool, len(threads))
	for _, id := range threads {
		family[id] = true
	}
	if len(family) == 0 {
		return family
	}
	asked := maps.Clone(family)
	for id := range facts {
		if slices.ContainsFunc(Ancestors(facts, id), func(above string) bool { return asked[above] }) {
			family[id] = true
		}
	}
	return family
}

// RootOf returns the topmost ancestor of a thread, or the thread itself.
func RootOf(facts map[string]Facts, thread string) string {
	if above := Ancestors(facts, thread); len(above) > 0 {
		return above[len(above)-1]
	}
	return thread
}

// Root returns the topmost ancestor of a thread, by reading the facts of its ancestors.
func Root(ctx context.Context, x Heads, thread string) (string, error) {
	for range Generations {
		facts, err := x.Facts(ctx, thread)
		if err != nil || facts.Parent == nil {
			return thread, err
		}
		thread = facts.Parent.Thread
	}
	return thread, nil
}

// ThreadState is the state of a thread.
type ThreadState struct {
	Head protocol.Hash
	End  *Ended // nil if active
}

// Find returns the state of an active or ended thread, or [ErrNoThread]. It looks twice, because a thread
// might be reopened between reading active and ended ones.
func Find(ctx context.Context, x Heads, thread string) (at ThreadState, err error) {
	for range 2 {
		if at.Head, err = x.Head(ctx, thread); !errors.Is(err, ErrNoThread) {
			return at, err
		}
		ended, lost := x.Ended(ctx, thread)
		if lost == nil {
			return ThreadState{Head: ended.Head, End: &ended}, nil
		}
		if err = lost; !errors.Is(err, ErrNoThread) {
			break
		}
	}
	return ThreadState{}, err
}

// ThreadStates returns every thread, active and ended. If some lines are unreadable, it returns an error
// together with the others.
func ThreadStates(ctx context.Context, x Heads) (map[string]ThreadState, error) {
	all := map[string]ThreadState{}
	var faults []error
	for e, err := range x.History(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[e.Thread] = ThreadState{Head: e.Head, End: &e}
	}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[h.Thread] = ThreadState{Head: h.Hash}
	}
	// A thread that ended between the two reads was active in the first and isn't active in the second.
	for e, err := range x.History(ctx) {
		if _, known := all[e.Thread]; err == nil && !known {
			all[e.Thread] = ThreadState{Head: e.Head, End: &e}
		}
	}
	return all, errors.Join(faults...)
}
