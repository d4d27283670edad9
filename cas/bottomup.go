package cas

import (
	"context"
	"fmt"
)

// Visited is a node that a [BottomUp] walk has come to.
type Visited struct {
	Node Node
	// Needs are its type, unless it is its own, and then what it refers to. All
	// of them have been visited before it.
	Needs []Hash
	// Tombstone is set if the node was redacted. Then Node has only its hash, and
	// it needs nothing.
	Tombstone *Tombstone
}

// BottomUpOptions of a walk. The zero value works.
type BottomUpOptions struct {
	// Known reports a node that the walk is to pass over, with all below it.
	Known func(Hash) (bool, error)
	// Verify checks each node against its type.
	Verify bool
}

// VisitError says at which node a [BottomUp] walk has ended.
type VisitError struct {
	Hash Hash
	By   Hash // the node that needs it; "" for a root
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

// BottomUp visits every node that can be reached from the roots once, types
// included, each after all that it needs: depth first, needs in their order. So
// equal roots in equal order give an equal walk. It ends with the first error: a
// [*VisitError] with that of Get, [Refs] or [Verify], or a [*CorruptError] for a
// node that leads to itself, which only somebody who constructs hashes can make;
// that of Known, of visit, or of ctx as it is.
//
// It keeps a stack of its own, because chains are as long as threads, and few
// payloads on it, because together they could be all of a thread.
func BottomUp(ctx context.Context, r Reader, roots []Hash, o BottomUpOptions, visit func(Visited) error) error {
	w := climber{reader: r, inspector: NewInspector(r), options: o, state: map[Hash]climbState{}, visit: visit}
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

// climber is one walk.
type climber struct {
	reader    Reader
	inspector *Inspector
	options   BottomUpOptions
	state     map[Hash]climbState
	stack     []opened
	kept      int // bytes of the payloads below the top of the stack
	visit     func(Visited) error
}

// climbKeeps bounds the payloads on the stack, in bytes. What is more is read again.
const climbKeeps = 16 << 20

type climbState byte

const (
	climbOpen climbState = iota + 1 // waits for what it needs
	climbDone
)

// opened is a node on the stack. Its payload may be dropped while others are above it.
type opened struct {
	node  Node
	needs []Hash
	next  int // of needs
}

// enter opens a node, unless there is nothing to do for it.
func (w *climber) enter(ctx context.Context, h Hash) error {
	switch w.state[h] {
	case climbDone:
		return nil
	case climbOpen:
		return w.failed(h, &CorruptError{Hash: h, Reason: "it leads to itself"})
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
	if redacted, ok := AsRedacted(err); ok {
		w.state[h] = climbDone
		return w.visit(Visited{Node: Node{Hash: h}, Tombstone: &redacted.Tombstone})
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

func (w *climber) failed(h Hash, err error) error {
	out := &VisitError{Hash: h, Err: err}
	if len(w.stack) > 0 {
		out.By = w.stack[len(w.stack)-1].node.Hash
	}
	return out
}

func (w *climber) needs(ctx context.Context, n Node) ([]Hash, error) {
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

// Needs is what a node with these refs needs: its type, unless it is its own, and
// then the refs.
func Needs(n Node, refs []Hash) []Hash {
	if n.Type == n.Hash {
		return refs
	}
	needs := make([]Hash, 0, len(refs)+1)
	needs = append(needs, n.Type)
	for _, r := range refs {
		if r != n.Type {
			needs = append(needs, r)
		}
	}
	return needs
}

// leave visits the newest open node, all of whose needs have been visited.
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
