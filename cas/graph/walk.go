package graph

import (
	"context"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/cas"
)

// WalkOptions configures a walk. FollowTypes also visits the schema of each node.
type WalkOptions struct{ FollowTypes bool }

// Walk yields every node reachable from the roots once, breadth first. It yields an unreadable node with only
// its hash and the error of Get, and a node whose refs can't be determined completely, with the error of
// [Refs]. It continues after both. It stops when ctx is done and then yields its error last.
func Walk(ctx context.Context, r cas.Reader, roots []cas.Hash, o WalkOptions) iter.Seq2[cas.Node, error] {
	return func(yield func(cas.Node, error) bool) {
		w := walker{finder: newRefFinder(r), seen: map[cas.Hash]bool{}}
		w.enqueue(roots...)
		for len(w.queue) > 0 {
			if err := ctx.Err(); err != nil {
				yield(cas.Node{}, err)
				return
			}
			h := w.queue[0]
			w.queue = w.queue[1:]
			if !yield(w.visit(ctx, h, o)) {
				return
			}
		}
	}
}

type walker struct {
	finder *refFinder
	seen   map[cas.Hash]bool
	queue  []cas.Hash
}

func (w *walker) enqueue(hashes ...cas.Hash) {
	for _, h := range hashes {
		if !w.seen[h] {
			w.seen[h] = true
			w.queue = append(w.queue, h)
		}
	}
}

func (w *walker) visit(ctx context.Context, h cas.Hash, o WalkOptions) (cas.Node, error) {
	n, err := w.finder.reader.Get(ctx, h)
	if err != nil {
		return cas.Node{Hash: h}, err
	}
	refs, err := w.finder.refs(ctx, n)
	w.enqueue(refs...)
	if o.FollowTypes {
		w.enqueue(n.Type)
	}
	return n, err
}

// Visited is a node visited by [BottomUp].
type Visited struct {
	Node cas.Node
	// Needs lists its type, unless it is its own, followed by its refs. All of them were visited before.
	Needs []cas.Hash
	// Tombstone is set if the node was redacted. Node then has only its hash, and needs nothing.
	Tombstone *cas.Tombstone
}

// BottomUpOptions configures a walk. The zero value works.
type BottomUpOptions struct {
	// Known reports whether the walk should skip a node and everything below it.
	Known func(cas.Hash) (bool, error)
	// Verify means that each node is checked against its type.
	Verify bool
}

// VisitError identifies the node at which a [BottomUp] walk failed.
type VisitError struct {
	Hash cas.Hash
	By   cas.Hash // node that needs it; "" for a root
	Err  error
}

// Error implements error.
func (e *VisitError) Error() string {
	if e.By == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("node %s needs %s: %v", e.By, e.Hash, e.Err)
}

// Unwrap returns the cause.
func (e *VisitError) Unwrap() error { return e.Err }

// BottomUp visits every node reachable from the roots once, types included, each after everything it needs:
// depth first, with needs in order. The same roots in the same order give the same walk. It stops at the
// first error: a [*VisitError] with an error of Get, [Refs] or [cas.Verify], or with a [*cas.CorruptError] for a
// cycle, which requires constructed hashes; errors of Known, visit and ctx are returned unchanged.
//
// It keeps its own stack, because chains are as long as threads, and only a few payloads on it, because
// together they could be a whole thread.
func BottomUp(ctx context.Context, r cas.Reader, roots []cas.Hash, o BottomUpOptions, visit func(Visited) error) error {
	w := climber{reader: r, inspector: NewInspector(r), options: o, state: map[cas.Hash]climbState{}, visit: visit}
	for _, root := range roots {
		if err := w.enter(ctx, root); err != nil {
			return err
		}
		for len(w.stack) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			top := &w.stack[len(w.stack)-1]
			step := w.leave
			if top.next < len(top.needs) {
				need := top.needs[top.next]
				top.next++
				step = func(ctx context.Context) error { return w.enter(ctx, need) }
			}
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// climber is the state of a walk.
type climber struct {
	reader    cas.Reader
	inspector *Inspector
	options   BottomUpOptions
	state     map[cas.Hash]climbState
	stack     []opened
	kept      int // bytes of payloads below the top of the stack
	visit     func(Visited) error
}

// climbKeeps bounds the payloads on the stack, in bytes. Others are read again.
const climbKeeps = 16 << 20

type climbState byte

const (
	climbOpen climbState = iota + 1 // waiting for what it needs
	climbDone
)

// opened is a node on the stack. Its payload can be dropped while others are above it.
type opened struct {
	node  cas.Node
	needs []cas.Hash
	next  int // index into needs
}

// enter opens a node unless it is known or already visited.
func (w *climber) enter(ctx context.Context, h cas.Hash) error {
	switch w.state[h] {
	case climbDone:
		return nil
	case climbOpen:
		return w.failed(h, &cas.CorruptError{Hash: h, Reason: "it refers to itself"})
	}
	if w.options.Known != nil {
		known, err := w.options.Known(h)
		if err != nil {
			return err
		}
		if known {
			w.state[h] = climbDone
			return nil
		}
	}
	n, err := w.reader.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		w.state[h] = climbDone
		return w.visit(Visited{Node: cas.Node{Hash: h}, Tombstone: &redacted.Tombstone})
	}
	if err != nil {
		return w.failed(h, err)
	}
	needs, err := w.needs(ctx, n)
	if err != nil {
		return w.failed(h, err)
	}
	if len(w.stack) > 0 {
		below := &w.stack[len(w.stack)-1].node
		if w.kept+len(below.Payload) > climbKeeps {
			below.Payload = nil
		}
		w.kept += len(below.Payload)
	}
	w.state[h] = climbOpen
	w.stack = append(w.stack, opened{node: n, needs: needs})
	return nil
}

func (w *climber) failed(h cas.Hash, err error) error {
	out := &VisitError{Hash: h, Err: err}
	if len(w.stack) > 0 {
		out.By = w.stack[len(w.stack)-1].node.Hash
	}
	return out
}

func (w *climber) needs(ctx context.Context, n cas.Node) ([]cas.Hash, error) {
	look := w.inspector.Refs
	if w.options.Verify {
		look = w.inspector.Inspect
	}
	refs, err := look(ctx, n)
	if err != nil {
		return nil, err
	}
	return Needs(n, refs), nil
}

// Needs returns what a node with these refs needs: its type, unless it is its own, followed by the refs.
func Needs(n cas.Node, refs []cas.Hash) []cas.Hash {
	if n.Type == n.Hash {
		return refs
	}
	needs := make([]cas.Hash, 0, len(refs)+1)
	needs = append(needs, n.Type)
	for _, r := range refs {
		if r != n.Type {
			needs = append(needs, r)
		}
	}
	return needs
}

// leave visits the top node, whose needs have all been visited.
func (w *climber) leave(ctx context.Context) error {
	last := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	if len(w.stack) > 0 {
		w.kept -= len(w.stack[len(w.stack)-1].node.Payload)
	}
	if last.node.Payload == nil {
		n, err := w.reader.Get(ctx, last.node.Hash)
		if err != nil {
			return w.failed(last.node.Hash, err)
		}
		last.node = n
	}
	w.state[last.node.Hash] = climbDone
	return w.visit(Visited{Node: last.node, Needs: last.needs})
}
