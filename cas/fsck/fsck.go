// Package fsck checks a store and its index: every node must be readable, have the right hash and match its
// type; everything referenced by nodes, heads, the history or the registry must exist; steps must form a
// chain. It reports the threads and workflows affected by each fault, and repairs what it can.
//
// It can't detect a missing node that nothing references, or damage to a node's timestamp that results in a
// date in the past, because no hash covers it.
package fsck

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/sorting"
)

// Kind is the kind of a fault.
type Kind string

// The kinds of faults.
const (
	Damaged    Kind = "damaged"    // a file that doesn't match its hash
	Unreadable Kind = "unreadable" // a file or directory that can't be read; its state is unknown
	Invalid    Kind = "invalid"    // a node that doesn't match its type
	Missing    Kind = "missing"    // a referenced node that doesn't exist
	Chain      Kind = "chain"      // a step that doesn't fit its predecessor
	Future     Kind = "future"     // a node with a future timestamp, because of damage or a wrong clock
	Seal       Kind = "seal"       // a node that differs from what was sealed, or a damaged seal
	Files      Kind = "files"      // a step whose files are damaged or missing
	Index      Kind = "index"      // an unreadable index entry, or one that references the wrong kind of node
)

// Fault is a single problem.
type Fault struct {
	Kind    Kind     `json:"kind"`
	Hash    cas.Hash `json:"hash,omitempty"`
	Path    string   `json:"path"` // place of the bad or missing content
	Message string   `json:"message"`
	// Threads and Workflows list the first ones that depend on it; Dependents is their total number.
	Threads    []string `json:"threads,omitempty"`
	Workflows  []string `json:"workflows,omitempty"`
	Dependents int      `json:"dependents"`
	// Restore is the command that brings back a lost node, if one is known.
	Restore  string `json:"restore,omitempty"`
	Repaired string `json:"repaired,omitempty"` // description of the repair
	// Remains means that the repair didn't fix it completely.
	Remains bool `json:"remains"`

	cut bool // see [cas.CorruptError]
}

// Report is the result of a check.
type Report struct {
	Nodes     int     `json:"nodes"`
	Threads   int     `json:"threads"` // active and ended
	Workflows int     `json:"workflows"`
	Faults    []Fault `json:"faults"`
	// Tombstones lists the redacted nodes, which aren't faults. Seals is the number of sealed nodes.
	Tombstones []Tombstone `json:"tombstones"`
	Seals      int         `json:"seals"`
	// Files is the number of file trees checked.
	Files int `json:"files,omitempty"`
	// Unlisted is the number of faults beyond the report's limit.
	Unlisted int `json:"unlisted,omitempty"`
}

// Sound reports whether no problems remain.
func (r Report) Sound() bool {
	return r.Unlisted == 0 && !slices.ContainsFunc(r.Faults, func(f Fault) bool { return f.Remains })
}

// Bounds of a report.
const (
	maxFaults     = 100_000
	maxDependents = 10
)

// Options configures a check.
type Options struct {
	Home    string      // whose index is checked; "": nodes only, unless there is an Index
	Index   heads.Index // checked instead of a home's
	Repair  bool
	Program string // the name of the check's program in hints, such as "uwf cas"
	Now     func() time.Time
}

// tomorrow allows for differing clocks.
const tomorrow = 24 * time.Hour

// Store is a store that can be checked and repaired.
type Store interface {
	cas.Store
	cas.Collected
	Exists() bool
	// Originals reports whether it belongs to the original.
	Originals() bool
	// Dir returns its directory, for messages.
	Dir() string
	// Where and SealPlace return where the content of a node, or its seal, is or should be, for messages.
	Where(h cas.Hash) string
	SealPlace(h cas.Hash) string
	// Seal returns the stored seal of a node, zero without one. Seals yields the nodes that have one.
	Seal(h cas.Hash) (cas.Seal, error)
	Seals(ctx context.Context) iter.Seq2[cas.Hash, error]
	// Quarantine and QuarantineSeal remove a damaged node, or its seal, and return the path of a copy.
	Quarantine(ctx context.Context, h cas.Hash) (string, error)
	QuarantineSeal(ctx context.Context, h cas.Hash) (string, error)
	// Checked records that no fault was found.
	Checked() error
}

// Run checks a store, whose hash function must be known. The error means that the check could not be
// completed; problems are in the report.
func Run(ctx context.Context, s Store, o Options) (Report, error) {
	first, err := look(ctx, s, o)
	if err == nil && len(first.Faults) == 0 {
		err = s.Checked()
	}
	if err != nil || !o.Repair || len(first.Faults) == 0 {
		return first, err
	}
	if err := repair(ctx, s, o, first.Faults); err != nil {
		return first, fmt.Errorf("repair: %w", err)
	}
	// Only a second check shows what remains: a restored file references others, and a quarantined one is
	// missing.
	report, err := look(ctx, s, o)
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

func newCheck(s Store, o Options) *check {
	c := &check{store: s, home: o.Home, program: o.Program, limit: o.Now().Add(tomorrow).UnixMilli(), redacted: map[census.ID]int{}}
	c.report.Tombstones = []Tombstone{}
	c.index = o.Index
	c.threads, c.history, c.facts, c.registry = s.Dir(), s.Dir(), s.Dir(), s.Dir()
	if x := fileheads.Open(o.Home, durable.OS()); o.Home != "" {
		c.index, c.files = x, x
		c.threads, c.history, c.facts, c.registry = x.ThreadsPath(), x.HistoryPath(), x.FactsPath(), x.RegistryPath()
	}
	return c
}

// check is the state of one run.
type check struct {
	store   Store
	home    string
	index   heads.Index      // nil without one
	files   *fileheads.Heads // the index of a home
	program string
	limit   int64 // of timestamps, ms
	report  Report

	threads, history, facts, registry string // places of the index, for messages

	graph *census.Graph
	steps map[census.ID]step
	roots []root
	// redacted contains indexes into the report's Tombstones.
	redacted map[census.ID]int
}

// look finds problems. If a node is removed after a node that references it was read, it looks missing. The check
// doesn't lock the store, because a collector would wait for it. Instead it repeats itself after a collection.
func look(ctx context.Context, s Store, o Options) (r Report, err error) {
	err = cas.Settle(ctx, s, func() error {
		r, err = newCheck(s, o).look(ctx)
		return err
	}, func() error { return nil })
	return r, err
}

func (c *check) look(ctx context.Context) (Report, error) {
	if err := c.nodes(ctx); err != nil {
		return c.report, err
	}
	c.expectFoundation()
	if err := c.checkIndex(ctx); err != nil {
		return c.report, err
	}
	if err := c.absent(ctx); err != nil {
		return c.report, err
	}
	c.chains(ctx)
	if err := c.seals(ctx); err != nil {
		return c.report, err
	}
	c.dependents()
	return c.report, ctx.Err()
}

// nodes reads every node.
func (c *check) nodes(ctx context.Context) error {
	set, err := census.List(ctx, c.store, func(err error) {
		c.fault(Fault{Kind: Unreadable, Path: c.store.Dir(), Message: err.Error()})
	})
	if err != nil {
		return err
	}
	c.report.Nodes = set.Len()
	c.graph, c.steps = census.NewGraph(set), map[census.ID]step{}
	examine := func(inspector *graph.Inspector, id census.ID, n cas.Node, err error) seen {
		return c.examine(ctx, inspector, id, n, err)
	}
	return census.EachNode(ctx, c.store, c.inspector, set, examine, c.take)
}

func (c *check) fault(f Fault) {
	if len(c.report.Faults) == maxFaults {
		c.report.Unlisted++
		return
	}
	f.Remains = true
	c.report.Faults = append(c.report.Faults, f)
}

// knowing provides the schemas of our kinds even if the store has lost them: without them, dependents could
// not be determined.
type knowing struct{ Store }

// Get implements [cas.Getter].
func (k knowing) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := k.Store.Get(ctx, h)
	if err == nil {
		return n, nil
	}
	if known, ok := k.Kinds().Builtin(h); ok {
		return known, nil
	}
	return n, err
}

// seen is the result of examining one node.
type seen struct {
	id     census.ID
	refs   []cas.Hash // including its type
	step   *step
	faults []Fault
	// tombstone is set if it was redacted.
	tombstone *cas.Tombstone
}

// examine checks one node on its own. It is called concurrently.
func (c *check) examine(ctx context.Context, inspector *graph.Inspector, id census.ID, n cas.Node, err error) seen {
	out := seen{id: id}
	h := c.graph.Hash(id)
	wrong := func(kind Kind, message string) {
		out.faults = append(out.faults, Fault{Kind: kind, Hash: h, Path: c.store.Where(h), Message: message})
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		out.tombstone = &redacted.Tombstone
		return out
	}
	if err != nil {
		wrong(kindOf(err), reason(err))
		var corrupt *cas.CorruptError
		out.faults[0].cut = errors.As(err, &corrupt) && corrupt.Cut
		return out
	}
	refs, err := inspector.Inspect(ctx, n)
	out.refs = append(refs, n.Type)
	switch {
	case err == nil:
		err = c.place(ctx, n, &out)
		if err != nil {
			wrong(Invalid, reason(err))
		}
	case isOthersFault(err, h):
		// A missing or damaged type is reported with the type.
		if _, err := c.store.Get(ctx, n.Type); err == nil {
			wrong(Invalid, fmt.Sprintf("its type %s is not a schema", n.Type))
		}
	default:
		wrong(kindOf(err), reason(err))
	}
	if n.Timestamp > c.limit {
		wrong(Future, fmt.Sprintf("its timestamp, %d ms, is in the future", n.Timestamp))
	}
	return out
}

// isOthersFault reports whether an error is about another node: the type.
func isOthersFault(err error, h cas.Hash) bool {
	var corrupt *cas.CorruptError
	return errors.Is(err, cas.ErrNotFound) || errors.As(err, &corrupt) && corrupt.Hash != h
}

// kindOf distinguishes damage from files that can't be read at all.
func kindOf(err error) Kind {
	var (
		corrupt *cas.CorruptError
		schema  *cas.SchemaError
	)
	switch {
	case errors.As(err, &corrupt):
		return Damaged
	case errors.As(err, &schema):
		return Invalid
	case errors.Is(err, cas.ErrNotFound):
		return Missing
	}
	return Unreadable
}

// reason returns an error's text without what the fault already contains.
func reason(err error) string {
	if corrupt, ok := errors.AsType[*cas.CorruptError](err); ok {
		return corrupt.Reason
	}
	return err.Error()
}

// place reads the place of a step. Other kinds aren't decoded: their schemas cover all requirements.
func (c *check) place(ctx context.Context, n cas.Node, out *seen) error {
	kind, version, err := c.store.Kinds().Of(ctx, knowing{c.store}, n.Type)
	if err != nil || kind != protocol.KindStep {
		return err
	}
	var s protocol.Step
	if version == 0 {
		s, _, err = cas.OriginalStep(ctx, knowing{c.store}, n)
	} else {
		s, err = cas.As[protocol.Step](ctx, c.store, n)
	}
	if err != nil {
		return err
	}
	if out.step = newStep(s); version == 0 {
		out.step.index = unplaced
	}
	return nil
}

// take collects the results for a chunk of nodes.
func (c *check) take(nodes []seen) {
	for _, n := range nodes {
		c.graph.Add(n.id, n.refs...)
		if n.tombstone != nil {
			c.bury(n.id, *n.tombstone)
		}
		if n.step != nil {
			c.steps[n.id] = *n.step
		}
		for _, f := range n.faults {
			c.fault(f)
		}
	}
}

// expectFoundation adds references to the schemas that every store starts with, so that missing ones are
// reported.
func (c *check) expectFoundation() {
	if !c.store.Exists() || c.store.Originals() || c.index != nil && c.files == nil {
		return // a database has only the schemas that its nodes need
	}
	for _, n := range c.store.Kinds().Foundation() {
		c.graph.Node(n.Hash)
	}
}

func (c *check) inspector() *graph.Inspector {
	return graph.NewInspector(knowing{c.store})
}

// absent checks the nodes that are referenced but weren't listed. It also examines those that were put since.
func (c *check) absent(ctx context.Context) error {
	inspector := c.inspector()
	for _, id := range c.graph.Absent() {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := c.graph.Name(id)
		n, err := c.store.Get(ctx, h)
		if err == nil {
			_, err = inspector.Inspect(ctx, n)
		}
		if _, redacted := cas.AsRedacted(err); redacted {
			continue // put since
		}
		switch {
		case err == nil || isOthersFault(err, h) && !errors.Is(err, cas.ErrNotFound):
		case errors.Is(err, cas.ErrNotFound):
			c.fault(Fault{Kind: Missing, Hash: h, Path: c.store.Where(h), Message: "the node is missing"})
		default:
			c.fault(Fault{Kind: kindOf(err), Hash: h, Path: c.store.Where(h), Message: reason(err)})
		}
	}
	return nil
}

// step is the place of a step in its chain.
type step struct {
	start, prev cas.Hash
	index       int
}

// unplaced is the index of a step of the original, which doesn't contain it.
const unplaced = -1

func newStep(s protocol.Step) *step {
	out := &step{start: s.Start, index: s.Index}
	if s.Prev != nil {
		out.prev = *s.Prev
	}
	return out
}

// chains checks that each step fits its predecessor.
func (c *check) chains(ctx context.Context) {
	for id, s := range c.steps {
		h := c.graph.Hash(id)
		wrong := func(format string, args ...any) {
			c.fault(Fault{Kind: Chain, Hash: h, Path: c.store.Where(h), Message: fmt.Sprintf(format, args...)})
		}
		if s.index != unplaced && (s.index == 0) != (s.prev == "") {
			why := map[bool]string{true: "no", false: "a"}[s.prev == ""]
			wrong("its index is %d, but it has %s previous step", s.index, why)
			continue
		}
		for _, link := range []cas.Hash{s.prev, s.start} {
			if c.isRedacted(link) {
				wrong("node %s, which its chain needs, was redacted", link)
			}
		}
		if s.prev == "" {
			continue
		}
		prevID, ok := c.graph.ID(s.prev)
		if !ok {
			continue // missing, or put since
		}
		prev, ok := c.steps[prevID]
		switch {
		case !ok:
			if n, err := c.store.Get(ctx, s.prev); err == nil && !c.is(n.Type, protocol.KindStep) {
				wrong("its previous node %s is not a step", s.prev)
			}
		case prev.start != s.start:
			wrong("its previous step %s belongs to another start, %s", s.prev, prev.start)
		case s.index != unplaced:
			if index := c.indexOf(ctx, s.prev, prev); index != s.index-1 {
				wrong("its index is %d, but its previous step %s has index %d", s.index, s.prev, index)
			}
		}
	}
}

// indexOf returns the index of a step; unplaced if its chain is broken. It counts only where our steps follow the
// original's.
func (c *check) indexOf(ctx context.Context, h cas.Hash, s step) int {
	if s.index != unplaced {
		return s.index
	}
	t, err := thread.Open(ctx, knowing{c.store}, h)
	if err != nil {
		return unplaced
	}
	return t.Len() - 1
}

// is reports whether a type belongs to one of the kinds.
func (c *check) is(typ cas.Hash, kinds ...protocol.Kind) bool {
	kind, _, err := c.store.Kinds().Of(context.Background(), knowing{c.store}, typ)
	return err == nil && slices.Contains(kinds, kind)
}

// Tombstone is a redacted node. Sealed means that a stored seal proves it; otherwise anyone who can write to
// the store could have created it.
type Tombstone struct {
	Hash    cas.Hash `json:"hash"`
	Type    cas.Hash `json:"type"`
	Path    string   `json:"path"`
	Reason  string   `json:"reason"`
	At      int64    `json:"redactedAt"` // ms
	Sealed  bool     `json:"sealed"`
	Foreign bool     `json:"foreign,omitempty"` // imported rather than created here
	Threads []string `json:"threads"`           // the first threads that reference it
}

// bury records a tombstone.
func (c *check) bury(id census.ID, t cas.Tombstone) {
	c.redacted[id] = len(c.report.Tombstones)
	c.report.Tombstones = append(c.report.Tombstones, Tombstone{
		Hash: t.Hash, Type: t.Type, Path: c.store.Where(t.Hash), Reason: t.Reason, At: t.At, Foreign: t.Foreign,
		Threads: []string{},
	})
}

func (c *check) isRedacted(h cas.Hash) bool {
	id, ok := c.graph.ID(h)
	if ok {
		_, ok = c.redacted[id]
	}
	return ok
}

// seals compares every stored seal with the content, and determines which tombstones are sealed. One change
// is one fault: a seal that differs only because one below it differs isn't reported.
func (c *check) seals(ctx context.Context) error {
	sealer := seal.New(knowing{c.store}, seal.Options{})
	for h, err := range c.store.Seals(ctx) {
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.fault(Fault{Kind: Unreadable, Path: c.store.Dir(), Message: err.Error()})
		default:
			c.report.Seals++
			c.sealOf(ctx, sealer, h)
		}
	}
	sorting.Func(c.report.Tombstones, func(a, b Tombstone) int { return cmp.Compare(a.Hash, b.Hash) })
	return nil
}

func (c *check) sealOf(ctx context.Context, sealer *seal.Sealer, h cas.Hash) {
	kept, err := c.store.Seal(h)
	if _, ok := errors.AsType[*cas.SealError](err); ok {
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.SealPlace(h), Message: err.Error()})
		return
	}
	if err != nil {
		c.fault(Fault{Kind: Unreadable, Hash: h, Path: c.store.SealPlace(h), Message: err.Error()})
		return
	}
	got, err := sealer.Seal(ctx, h)
	if seal.IsUnsealed(err) && c.isRedacted(h) {
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.Where(h),
			Message: "the node was sealed, but its tombstone has no seal, so it may be forged"})
		return
	}
	switch {
	case err == nil && got == kept:
		if id, ok := c.graph.ID(h); ok && c.isRedacted(h) {
			c.report.Tombstones[c.redacted[id]].Sealed = true
		}
	case err != nil && !seal.IsUnsealed(err):
		// Missing or damaged nodes below are reported with those nodes.
	case c.inherits(ctx, h, kept, sealer):
	default:
		c.fault(Fault{Kind: Seal, Hash: h, Path: c.store.SealPlace(h), Message: (&cas.SealError{Hash: h, Want: kept,
			Got: got}).Error()})
	}
}

// inherits reports whether a node matches its seal, given the stored seals of what it needs.
func (c *check) inherits(ctx context.Context, h cas.Hash, kept cas.Seal, sealer *seal.Sealer) bool {
	n, err := c.store.Get(ctx, h)
	if err != nil {
		return false
	}
	refs, err := graph.Refs(ctx, c.store, n)
	if err != nil {
		return false
	}
	var below []cas.Seal
	for _, need := range graph.Needs(n, refs) {
		s, err := c.store.Seal(need)
		if err != nil || s.IsZero() {
			s = sealer.Of(need)
		}
		below = append(below, s)
	}
	return cas.SealOf(n, below) == kept
}
