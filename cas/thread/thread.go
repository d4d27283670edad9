// Package thread reads and extends the chain of a thread as typed values. It
// reads only as far as it is asked: opening a thread costs its head, its start
// and nothing else, however long it is.
//
// Invariants of a chain: each step but the first names the one before it, whose
// index is one less; all name the same start. They are checked as the steps are
// read. A node that a chain names and that is missing is an error that wraps
// [cas.ErrNotFound].
package thread

import (
	"context"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// Thread is a chain seen from its head.
type Thread struct {
	Head      cas.Hash
	StartHash cas.Hash
	Start     protocol.Start
	Last      *Step // nil if no step has been made

	reader cas.Reader
}

// Step is a step with its place in the store.
type Step struct {
	Hash      cas.Hash
	Timestamp int64
	protocol.Step
}

// Open reads the head and the start. Errors: [cas.ErrNotFound], a
// [*cas.TypeError] if head is neither a start nor a step, a [*cas.CorruptError].
func Open(ctx context.Context, r cas.Reader, head cas.Hash) (*Thread, error) {
	n, err := r.Get(ctx, head)
	if err != nil {
		return nil, err
	}
	t := &Thread{Head: head, StartHash: head, reader: r}
	if n.Type == r.Kinds().Hash(protocol.KindStart) {
		t.Start, err = cas.As[protocol.Start](r, n)
		return t, err
	}
	last, err := stepOf(r, n)
	if err != nil {
		return nil, err
	}
	t.Last, t.StartHash = &last, last.Start
	if t.Start, err = cas.Read[protocol.Start](ctx, r, last.Start); err != nil {
		return nil, fmt.Errorf("start of step %s: %w", head, err)
	}
	return t, nil
}

// Len is the number of steps.
func (t *Thread) Len() int {
	if t.Last == nil {
		return 0
	}
	return t.Last.Index + 1
}

// Steps yields the steps, newest first, reading one node each. A chain whose
// links do not fit is a [*cas.CorruptError]; after an error nothing follows.
func (t *Thread) Steps(ctx context.Context) iter.Seq2[Step, error] {
	return func(yield func(Step, error) bool) {
		if t.Last == nil {
			return
		}
		for s := *t.Last; yield(s, nil) && s.Prev != nil; {
			prev, err := t.before(ctx, s)
			if err != nil {
				yield(Step{}, err)
				return
			}
			s = prev
		}
	}
}

// before reads the step before s and checks that they fit together.
func (t *Thread) before(ctx context.Context, s Step) (Step, error) {
	n, err := t.reader.Get(ctx, *s.Prev)
	if err != nil {
		return Step{}, fmt.Errorf("step before %s: %w", s.Hash, err)
	}
	broken := func(reason string, args ...any) error {
		return &cas.CorruptError{Hash: s.Hash, Reason: fmt.Sprintf("its previous node %s ", n.Hash) + fmt.Sprintf(reason, args...)}
	}
	if n.Type != t.reader.Kinds().Hash(protocol.KindStep) {
		return Step{}, broken("is not a step")
	}
	prev, err := stepOf(t.reader, n)
	if err != nil {
		return Step{}, err
	}
	if prev.Start != s.Start {
		return Step{}, broken("belongs to another start, %s", prev.Start)
	}
	if prev.Index != s.Index-1 {
		return Step{}, broken("has index %d, want %d", prev.Index, s.Index-1)
	}
	return prev, nil
}

// stepOf decodes a step and checks what can be checked without its neighbours.
func stepOf(r cas.Reader, n cas.Node) (Step, error) {
	s, err := cas.As[protocol.Step](r, n)
	if err != nil {
		return Step{}, err
	}
	if (s.Index == 0) != (s.Prev == nil) {
		return Step{}, &cas.CorruptError{Hash: n.Hash, Reason: fmt.Sprintf("its index is %d, but only the first step, 0, has no previous one", s.Index)}
	}
	return Step{Hash: n.Hash, Timestamp: n.Timestamp, Step: s}, nil
}

// Workflow reads the workflow that the thread runs.
func (t *Thread) Workflow(ctx context.Context) (protocol.Workflow, error) {
	w, err := cas.Read[protocol.Workflow](ctx, t.reader, t.Start.Workflow)
	if err != nil {
		return w, fmt.Errorf("workflow of start %s: %w", t.StartHash, err)
	}
	return w, nil
}
