// Package redact removes the content of a node and leaves a tombstone under its hash, so that every chain
// that references it still verifies.
//
// It doesn't redact what a thread needs to continue: steps, starts, workflows, schemas, and outputs that
// determine the next role. It reads the whole store to find other threads with the same content, because
// threads share nodes.
package redact

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/seal"
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

// Error implements error.
func (e *NeededError) Error() string {
	return fmt.Sprintf("node %s cannot be redacted: %s", e.Hash, e.Reason)
}

// SharedError means that other threads also reference a node.
type SharedError struct {
	Hash    cas.Hash
	Threads []string
}

// Error implements error.
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

// readHeads returns the heads of all threads, including those of other homes that use the store, with keys of
// the form "<id> in <home>".
func (r *redaction) readHeads(ctx context.Context) (map[string]cas.Hash, error) {
	found := map[string]cas.Hash{}
	add := func(x heads.Heads, suffix string) error {
		all, err := heads.ThreadStates(ctx, x)
		for id, at := range all {
			found[id+suffix] = at.Head
		}
		return err // an unreadable line might be a thread that shares the node
	}
	if err := add(r.index, ""); err != nil {
		return nil, err
	}
	if r.options.Others == nil {
		return found, nil
	}
	others, err := r.options.Others()
	for home, x := range others {
		err = errors.Join(err, add(x, " in "+home))
	}
	return found, err
}

// bury stores the tombstone if the threads are unchanged, while no process puts nodes.
func (r *redaction) bury(ctx context.Context) error {
	sealed, err := seal.New(r.store, seal.Options{}).Seal(ctx, r.node.Hash)
	if err != nil && ctx.Err() != nil {
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
