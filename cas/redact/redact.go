// Package redact removes the content of a node and leaves a tombstone under its hash, so that every chain
// that references it still verifies.
//
// It doesn't redact what a thread needs to continue: steps, starts, workflows, schemas, and outputs that
// determine the next role. It reads the whole store to find other threads with the same content, because
// threads share nodes.
package redact

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Store is a store of which nodes can be redacted.
type Store interface {
	cas.Store
	// Originals reports whether it belongs to the original, and has no tombstones.
	Originals() bool
	// Dir returns its directory, for messages.
	Dir() string
	// Redact stops writers, calls check, and replaces nodes by tombstones; then it removes their content.
	// Repeating it removes content that an interrupted call has left.
	Redact(ctx context.Context, check func() error, tombstones ...cas.Tombstone) error
}

// Options configures a redaction. Now is required.
type Options struct {
	Reason string // at most [cas.MaxReason] bytes
	Shared bool   // redact even if other threads reference the node
	// LooksBack reports whether a workflow's routing can read outputs of steps before the last one; nil:
	// assume that it can.
	LooksBack func(context.Context, protocol.Workflow) (bool, error)
	Now       func() time.Time
	// Others returns the threads of other homes that use the store, by directory; nil: there are none.
	Others func() (map[string]heads.Heads, error)
	// Half lists half-written turns: nodes that no other node references. They are redacted as well,
	// regardless of their content.
	Half []cas.Hash
}

// Done is the result of a redaction.
type Done struct {
	Thread string        `json:"thread"`
	Node   cas.Hash      `json:"node"`
	Type   cas.Hash      `json:"type"`
	Kind   protocol.Kind `json:"kind,omitempty"` // "" if the type is not ours
	Reason string        `json:"reason"`
	Seal   string        `json:"seal"`   // of the original node; "" if unknown
	Shared []string      `json:"shared"` // other threads that reference it
	// Already means that it was redacted before, and nothing was done.
	Already bool `json:"already,omitempty"`
	// Half lists the half-written turns redacted as well.
	Half []cas.Hash `json:"half,omitempty"`
}

// NeededError means that a node must not be redacted.
type NeededError struct {
	Hash   cas.Hash
	Reason string
}

func (e *NeededError) Error() string {
	return fmt.Sprintf("node %s cannot be redacted: %s", e.Hash, e.Reason)
}

// SharedError means that other threads also reference a node.
type SharedError struct {
	Hash    cas.Hash
	Threads []string
}

func (e *SharedError) Error() string {
	shown := e.Threads
	if len(shown) > 5 {
		shown = append(slices.Clone(shown[:5]), "…")
	}
	return fmt.Sprintf("node %s is shared with %d other threads: %v", e.Hash, len(e.Threads), shown)
}

// ErrNotPart means that a node isn't part of the thread.
var ErrNotPart = errors.New("is not part of the thread")

// tries bounds how often a redaction restarts because a head has moved. The last time it reads the threads while no
// process puts nodes, so that it also succeeds where threads move all the time.
const tries = 5

// Node redacts a node of a thread. Errors: [heads.ErrNoThread]; [ErrNotPart]; [*NeededError]; [*SharedError];
// [cas.ErrNotFound]; a [*cas.CorruptError] for a damaged node, whose content is no longer the requested one;
// [errors.ErrUnsupported] for a store of the original; an unreadable line of the index.
func Node(ctx context.Context, s Store, x heads.Heads, thread string, h cas.Hash, o Options) (Done, error) {
	if s.Originals() {
		return Done{}, fmt.Errorf("redact in %s: %w: it is a store of the original", s.Dir(), errors.ErrUnsupported)
	}
	o.Reason = cas.CleanReason(o.Reason)
	for n := range tries {
		r := &redaction{store: s, index: x, options: o, last: n+1 == tries, done: Done{Thread: thread, Node: h,
			Reason: o.Reason, Shared: []string{}}}
		done, err := r.try(ctx)
		if !errors.Is(err, errMoved) {
			return done, err
		}
	}
	return Done{}, fmt.Errorf("redact node %s: threads keep changing: %w", h, errMoved)
}

// errMoved means that a thread was added or has moved since the store was read.
var errMoved = errors.New("a thread has moved")

// redaction is one attempt.
type redaction struct {
	store   Store
	index   heads.Heads
	options Options
	done    Done
	node    cas.Node
	heads   map[string]cas.Hash
	half    []cas.Node // to be redacted as well
	last    bool       // of the attempts
}

func (r *redaction) try(ctx context.Context) (Done, error) {
	var err error
	if r.heads, err = r.readHeads(ctx); err != nil {
		return r.done, err
	}
	if _, known := r.heads[r.done.Thread]; !known {
		return r.done, fmt.Errorf("%w: %s", heads.ErrNoThread, r.done.Thread)
	}
	r.node, err = r.store.Get(ctx, r.done.Node)
	if redacted, ok := cas.AsRedacted(err); ok {
		t := redacted.Tombstone
		if t.Foreign { // it becomes our own, with our reason and time
			t.Reason, t.At, t.Foreign = r.options.Reason, r.options.Now().UnixMilli(), false
		}
		if err := r.store.Redact(ctx, func() error { return ctx.Err() }, t); err != nil {
			return r.done, err
		}
		r.done.Already, r.done.Type, r.done.Reason, r.done.Seal = true, t.Type, t.Reason, t.Seal.String()
		return r.done, nil
	}
	if err != nil {
		return r.done, err
	}
	if err := r.allowed(ctx); err != nil {
		return r.done, err
	}
	return r.done, r.bury(ctx)
}

// readHeads returns the heads of all threads, including the threads of other homes that use the store, with keys of
// the form "<id> in <home>".
func (r *redaction) readHeads(ctx context.Context) (map[string]cas.Hash, error) {
	all := map[string]heads.Heads{"": r.index}
	if r.options.Others != nil {
		others, err := r.options.Others()
		if err != nil {
			return nil, err
		}
		for home, x := range others {
			all[" in "+home] = x
		}
	}
	found := map[string]cas.Hash{}
	for in, x := range all {
		states, err := heads.ThreadStates(ctx, x)
		if a, ok := x.(heads.Auditor); ok && err == nil && !r.options.Shared {
			err = a.CheckLost(ctx)
		}
		if err != nil {
			return nil, err // an unreadable line or a lost one might be a thread that shares the node
		}
		for id, at := range states {
			found[id+in] = at.Head
		}
	}
	return found, nil
}

// bury stores the tombstone if the threads are unchanged, while no process puts nodes.
func (r *redaction) bury(ctx context.Context) error {
	sealed, err := seal.New(r.store, seal.Options{}).Seal(ctx, r.node.Hash)
	if err != nil && !isDamage(err) {
		return err
	}
	// A node that can't be sealed because something below it is missing can still be redacted; its tombstone
	// has no seal.
	r.done.Type, r.done.Seal = r.node.Type, sealed.String()
	at := r.options.Now().UnixMilli()
	tombstones := []cas.Tombstone{{Hash: r.node.Hash, Type: r.node.Type, Reason: r.options.Reason, Seal: sealed, At: at}}
	for _, n := range r.half {
		tombstones = append(tombstones, cas.Tombstone{Hash: n.Hash, Type: n.Type, Reason: r.options.Reason, At: at})
		r.done.Half = append(r.done.Half, n.Hash)
	}
	return r.store.Redact(ctx, func() error {
		now, err := r.readHeads(ctx)
		if err != nil || maps.Equal(now, r.heads) {
			return err
		}
		return r.allowedNow(ctx, now)
	}, tombstones...)
}

// allowedNow repeats the check with the heads that can't move any longer.
func (r *redaction) allowedNow(ctx context.Context, now map[string]cas.Hash) error {
	if !r.last {
		return errMoved
	}
	again := &redaction{store: r.store, index: r.index, options: r.options, node: r.node, heads: now,
		done: Done{Thread: r.done.Thread, Node: r.done.Node, Shared: []string{}}}
	if err := again.allowed(ctx); err != nil {
		return err
	}
	if r.done.Shared = again.done.Shared; !sameNodes(again.half, r.half) {
		return errMoved
	}
	return nil
}

func sameNodes(a, b []cas.Node) bool {
	hashes := func(nodes []cas.Node) (all []cas.Hash) {
		for _, n := range nodes {
			all = append(all, n.Hash)
		}
		slices.Sort(all)
		return all
	}
	return slices.Equal(hashes(a), hashes(b))
}

// allowed checks whether the node can be redacted, and finds the threads that share it.
func (r *redaction) allowed(ctx context.Context) error {
	if why := r.neededKind(ctx); why != "" {
		return &NeededError{Hash: r.node.Hash, Reason: why}
	}
	look, err := r.survey(ctx)
	if err != nil {
		return err
	}
	for _, h := range look.unshared {
		// A missing or redacted node has no content.
		n, err := r.store.Get(ctx, h)
		if err != nil && !isDamage(err) {
			return err
		}
		if err == nil && r.kind(ctx, n) == protocol.KindTurn {
			r.half = append(r.half, n)
		}
	}
	mine := false
	for id, head := range r.heads {
		switch {
		case !look.above[head]:
		case id == r.done.Thread:
			mine = true
		default:
			r.done.Shared = append(r.done.Shared, id)
		}
	}
	slices.Sort(r.done.Shared)
	if len(look.above) == 0 {
		// No continuing thread needs it. A replaced step can still reference it.
		if mine, err = r.replaced(ctx, look.loose); err != nil {
			return err
		}
		look.outputOf = nil
	}
	if !mine {
		return fmt.Errorf("node %s %w %s", r.node.Hash, ErrNotPart, r.done.Thread)
	}
	for _, step := range look.outputOf {
		if err := r.neededOutput(ctx, step); err != nil {
			return err
		}
	}
	if len(r.done.Shared) > 0 && !r.options.Shared {
		return &SharedError{Hash: r.node.Hash, Threads: r.done.Shared}
	}
	return nil
}

// replaced reports whether one of the nodes is a step made by the thread that is no longer in its chain.
func (r *redaction) replaced(ctx context.Context, nodes []cas.Hash) (bool, error) {
	t, err := thread.Open(ctx, r.store, r.heads[r.done.Thread])
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(nodes, func(h cas.Hash) bool {
		s, err := cas.Read[protocol.Step](ctx, r.store, h)
		return err == nil && s.Start == t.StartHash
	}), ctx.Err()
}

// neededKind returns the reason why no node of a kind can be redacted; "" if some can.
func (r *redaction) neededKind(ctx context.Context) string {
	kinds := r.store.Kinds()
	if r.node.Type == kinds.MetaHash() || r.node.Type == r.node.Hash {
		return "it is a schema, which other nodes need"
	}
	switch r.done.Kind = r.kind(ctx, r.node); r.done.Kind {
	case protocol.KindStep, protocol.KindStart:
		return "it is part of the chain; redact its detail, a turn, its prompt or an older output instead"
	case protocol.KindWorkflow:
		return "it is a workflow, which threads need to continue"
	}
	return ""
}

// kind returns the kind of a node; "" if it isn't ours or its schema is unreadable.
func (r *redaction) kind(ctx context.Context, n cas.Node) protocol.Kind {
	kind, _, _ := r.store.Kinds().Of(ctx, r.store, n.Type)
	return kind
}

// neededOutput returns an error if routing needs the node as the output of a step.
func (r *redaction) neededOutput(ctx context.Context, step cas.Hash) error {
	for id, head := range r.heads {
		if head == step {
			return &NeededError{Hash: r.node.Hash, Reason: fmt.Sprintf("it is the newest output of thread %s, which "+
				"decides the next role", id)}
		}
	}
	t, err := thread.Open(ctx, r.store, step)
	if err != nil {
		return err
	}
	w, err := t.Workflow(ctx)
	if err != nil {
		return err
	}
	looksBack := true
	if r.options.LooksBack != nil {
		if looksBack, err = r.options.LooksBack(ctx, w); err != nil {
			return err
		}
	}
	if looksBack {
		return &NeededError{Hash: r.node.Hash, Reason: fmt.Sprintf("it is the output of step %s, and conditions of workflow "+
			"%s may read it", step, w.Name)}
	}
	return nil
}

// surveyed contains information about the node from the whole store.
type surveyed struct {
	above    map[cas.Hash]bool // heads that lead to it
	outputOf []cas.Hash        // steps with it as their output, sorted
	loose    []cas.Hash        // if there are no such heads: all nodes that lead to it
	unshared []cas.Hash        // half-written turns that no node references
}

// seen is the result of reading one node.
type seen struct {
	id       census.ID
	refs     []cas.Hash
	outputOf bool
	err      error // it can't be read now
}

// isDamage reports whether the content of the store caused an error, rather than reading it.
func isDamage(err error) bool {
	_, redacted := cas.AsRedacted(err)
	return redacted || seal.IsUnsealed(err) || errors.Is(err, cas.ErrNotFound) || errors.As(err, new(*cas.CorruptError)) ||
		errors.As(err, new(*cas.TypeError))
}

// survey reads every node of the store. A damaged node counts as having no refs; fsck reports it. Another error ends the
// redaction: the node might be needed or shared.
func (r *redaction) survey(ctx context.Context) (surveyed, error) {
	var out surveyed
	var faults error
	set, err := census.List(ctx, r.store, func(err error) { faults = err })
	if err != nil {
		return out, err
	}
	if faults != nil {
		return out, fmt.Errorf("list nodes: %w", faults)
	}
	g := census.NewGraph(set)
	look := func(inspector *graph.Inspector, id census.ID, n cas.Node, err error) seen {
		out := seen{id: id}
		if err == nil {
			out.refs, err = inspector.Refs(ctx, n)
		}
		if err == nil && slices.Contains(out.refs, r.node.Hash) {
			var t *thread.Thread
			t, err = thread.Open(ctx, r.store, n.Hash)
			out.outputOf = err == nil && t.Last != nil && t.Last.Output == r.node.Hash
		}
		if err != nil && !isDamage(err) {
			out.err = err
		}
		return out
	}
	inspector := func() *graph.Inspector { return graph.NewInspector(r.store) }
	err = census.EachNode(ctx, r.store, inspector, set, look, func(nodes []seen) {
		for _, n := range nodes {
			g.Add(n.id, n.refs...)
			faults = cmp.Or(faults, n.err)
			if n.outputOf {
				out.outputOf = append(out.outputOf, g.Hash(n.id))
			}
		}
	})
	if err = cmp.Or(err, faults); err != nil {
		return out, err
	}
	slices.Sort(out.outputOf)
	out.above = map[cas.Hash]bool{}
	isHead := map[census.ID]cas.Hash{}
	for _, head := range r.heads {
		isHead[g.Node(head)] = head
	}
	half := make([]census.ID, len(r.options.Half))
	for i, h := range r.options.Half {
		half[i] = g.Node(h)
	}
	walker := g.Up()
	for i, h := range r.options.Half {
		alone := h != r.node.Hash
		walker.Reach(half[i:i+1], func(id census.ID) bool {
			alone = alone && id == half[i]
			return alone
		})
		if alone {
			out.unshared = append(out.unshared, h)
		}
	}
	var above []census.ID
	walker.Reach([]census.ID{g.Node(r.node.Hash)}, func(id census.ID) bool {
		if head, ok := isHead[id]; ok {
			out.above[head] = true
		}
		above = append(above, id)
		return true
	})
	if len(out.above) == 0 {
		for _, id := range above {
			out.loose = append(out.loose, g.Hash(id))
		}
	}
	return out, nil
}

// LooksBack reports whether routing may read outputs before the last one, which only conditions can.
func LooksBack(_ context.Context, w protocol.Workflow) (bool, error) {
	for _, node := range w.Graph {
		for _, t := range node.Transitions {
			if t.Condition != "" {
				return true, nil
			}
		}
	}
	return false, nil
}
