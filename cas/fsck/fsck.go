// Package fsck checks a store and the index that leads into it: that every node
// can be read, has its hash and satisfies its type; that what a node, a head, the
// history or the registry names is there; that steps form a chain. It says which
// threads and workflows each fault is about, and repairs what can be repaired.
//
// What it cannot find: a node that is gone and that nothing names, and damage to
// a node's timestamp that leaves a date which is not in the future, because no
// hash covers it.
package fsck

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/util/durable"
)

// Kind is what is wrong.
type Kind string

// The kinds of faults.
const (
	Damaged    Kind = "damaged"    // a file that is not what its hash promises
	Unreadable Kind = "unreadable" // a file or directory that cannot be read: nobody knows
	Invalid    Kind = "invalid"    // a node that does not satisfy its type
	Missing    Kind = "missing"    // a node that is named but not there
	Chain      Kind = "chain"      // a step that does not fit the one before it
	Future     Kind = "future"     // a node from the future: its timestamp is damaged, or a clock was wrong
	Misplaced  Kind = "misplaced"  // a node file in a wrong directory, where nobody finds it
	Seal       Kind = "seal"       // a node that is not what was sealed, or a damaged seal
	Files      Kind = "files"      // a step whose files are damaged or missing
	Index      Kind = "index"      // an entry of the index that cannot be read, or leads to the wrong kind of node
)

// Fault is one thing that is wrong.
type Fault struct {
	Kind    Kind     `json:"kind"`
	Hash    cas.Hash `json:"hash,omitempty"`
	Path    string   `json:"path"` // of the file that is wrong or should be there
	Message string   `json:"message"`
	// Threads and Workflows are the first that depend on it; Dependents is how
	// many there are.
	Threads    []string `json:"threads,omitempty"`
	Workflows  []string `json:"workflows,omitempty"`
	Dependents int      `json:"dependents"`
	Repaired   string   `json:"repaired,omitempty"` // what was done about it
	// Remains: something is still wrong after that.
	Remains bool `json:"remains"`

	stray *fsstore.Stray
	cut   bool // see [cas.CorruptError]
}

// Report is the result of a check.
type Report struct {
	Nodes     int     `json:"nodes"`
	Threads   int     `json:"threads"` // active and ended
	Workflows int     `json:"workflows"`
	Faults    []Fault `json:"faults"`
	// Tombstones are the nodes that were redacted; they are no faults. Seals is how
	// many nodes are sealed.
	Tombstones []Tombstone `json:"tombstones"`
	Seals      int         `json:"seals"`
	// Files is how many states of files were looked at.
	Files int `json:"files,omitempty"`
	// Unlisted is how many more faults there are than a report holds.
	Unlisted int `json:"unlisted,omitempty"`
}

// Sound reports whether nothing is wrong any more.
func (r Report) Sound() bool {
	return r.Unlisted == 0 && !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Remains })
}

// Bounds of a report.
const (
	maxFaults     = 100_000
	maxDependents = 10
)

// Options of a check.
type Options struct {
	Home   string // whose index is checked; "": only nodes
	Repair bool
	Now    func() time.Time
}

// tomorrow allows for clocks that differ.
const tomorrow = 24 * time.Hour

// Run checks a store, whose hash function must be known. The error says why the
// check could not be done; what is wrong is in the report.
func Run(ctx context.Context, s *fsstore.Store, o Options) (Report, error) {
	first, err := newCheck(s, o).look(ctx)
	if err != nil || !o.Repair || len(first.Faults) == 0 {
		return first, err
	}
	if err := repair(ctx, s, o, first.Faults); err != nil {
		return first, fmt.Errorf("repair: %w", err)
	}
	// Only a second look can tell what is still wrong: a file that is back in its
	// place leads on to others, one that was moved away is missing.
	report, err := newCheck(s, o).look(ctx)
	if err != nil {
		return report, err
	}
	var faults []Fault
	for _, f := range first.Faults {
		if f.Repaired != "" {
			f.Remains = false
			faults = append(faults, f)
		}
	}
	report.Faults = append(faults, report.Faults...)
	return report, nil
}

func newCheck(s *fsstore.Store, o Options) *check {
	c := &check{store: s, home: o.Home, limit: o.Now().Add(tomorrow).UnixMilli(), redacted: map[census.ID]int{}}
	c.report.Tombstones = []Tombstone{}
	if o.Home != "" {
		c.index = fileheads.Open(o.Home, durable.OS())
	}
	return c
}

// check is one run.
type check struct {
	store  *fsstore.Store
	home   string
	index  *fileheads.Heads // nil: none
	limit  int64            // of timestamps, ms
	report Report

	graph *census.Graph
	steps map[census.ID]step
	roots []root
	// redacted are the places in the report's Tombstones.
	redacted map[census.ID]int
}

// look finds what is wrong. The collector waits meanwhile: a node that goes while
// others that name it have been read would be a fault that is none.
func (c *check) look(ctx context.Context) (_ Report, err error) {
	release, err := c.store.Hold(ctx)
	if err != nil {
		return c.report, err
	}
	defer func() { err = errors.Join(err, release()) }()
	strays := make(chan []Fault, 1)
	go func() { strays <- c.strays(ctx) }()
	err = c.nodes(ctx)
	for _, f := range <-strays {
		c.fault(f)
	}
	if err != nil {
		return c.report, err
	}
	c.expectFoundation()
	if err := c.checkIndex(ctx); err != nil {
		return c.report, err
	}
	if err := c.absent(ctx); err != nil {
		return c.report, err
	}
	c.chains()
	if err := c.seals(ctx); err != nil {
		return c.report, err
	}
	c.dependents()
	return c.report, ctx.Err()
}

// nodes reads every node.
func (c *check) nodes(ctx context.Context) error {
	set, err := census.List(ctx, c.store, c.unlistable)
	if err != nil {
		return err
	}
	c.report.Nodes = set.Len()
	c.graph, c.steps = census.NewGraph(set), map[census.ID]step{}
	examine := func(inspector *cas.Inspector, id census.ID, n cas.Node, err error) seen {
		return c.examine(ctx, inspector, id, n, err)
	}
	return census.EachNode(ctx, c.store, c.inspector, set, examine, c.take)
}

// strays finds files that are not where they belong, while the nodes are read.
func (c *check) strays(ctx context.Context) (faults []Fault) {
	for stray, err := range c.store.Strays(ctx) {
		switch {
		case len(faults) > maxFaults:
			return faults
		case err != nil:
			faults = append(faults, Fault{Kind: Unreadable, Path: c.store.Dir(), Message: err.Error()})
		case stray.Hash != "":
			faults = append(faults, Fault{Kind: Misplaced, Hash: stray.Hash, Path: stray.Path, stray: &stray,
				Message: "the file is in a directory where nobody looks for this node"})
		}
	}
	return faults
}

func (c *check) unlistable(err error) {
	c.fault(Fault{Kind: Unreadable, Path: c.store.Dir(), Message: err.Error()})
}

func (c *check) fault(f Fault) {
	if len(c.report.Faults) == maxFaults {
		c.report.Unlisted++
		return
	}
	f.Remains = true
	c.report.Faults = append(c.report.Faults, f)
}

// note reports what may be wrong.
func (c *check) note(f Fault) {
	if len(c.report.Faults) < maxFaults {
		c.report.Faults = append(c.report.Faults, f)
	}
}
