// Package thread reads and extends the chain of a thread as typed values. It
// reads only as far as it is asked: opening a thread costs its head, its start
// and nothing else, however long it is. Only where the head is a step of the
// original's, which does not say its place, is the chain read back to count.
//
// Invariants of a chain: each step but the first names the one before it, whose
// index is one less; all name the same start. They are checked as the steps are
// read. A node that a chain names and that is missing is an error that wraps
// [cas.ErrNotFound].
package thread

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/promptquote"
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

	unplaced bool // the original's: its place follows from the chain
}

// Open reads the head and the start. Errors: [cas.ErrNotFound], a
// [*cas.TypeError] if head is neither a start nor a step, a [*cas.CorruptError].
func Open(ctx context.Context, r cas.Reader, head cas.Hash) (*Thread, error) {
	n, err := r.Get(ctx, head)
	if err != nil {
		return nil, err
	}
	t := &Thread{Head: head, StartHash: head, reader: r}
	t.Start, err = cas.As[protocol.Start](ctx, r, n)
	if _, ok := errors.AsType[*cas.TypeError](err); !ok {
		return t, err
	}
	last, err := t.stepOf(ctx, n)
	if err != nil {
		return nil, err
	}
	if last.unplaced {
		if err := t.place(ctx, &last); err != nil {
			return nil, err
		}
	}
	t.Last, t.StartHash = &last, last.Start
	if t.Start, err = cas.Read[protocol.Start](ctx, r, last.Start); err != nil {
		return nil, fmt.Errorf("start of step %s: %w", head, err)
	}
	return t, nil
}

// Task is the prompt of the start as people read it: the tags around what came from an answer are
// for models.
func (t *Thread) Task() string { return promptquote.Plain(t.Start.Prompt) }

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

// before reads the step before s, whose place is known, and checks that they fit
// together.
func (t *Thread) before(ctx context.Context, s Step) (Step, error) {
	prev, err := t.link(ctx, s)
	if err != nil {
		return Step{}, err
	}
	if prev.unplaced {
		prev.follow(s)
		return prev, prev.checkPlace()
	}
	if prev.Index != s.Index-1 {
		return Step{}, badLink(s, "has index %d, want %d", prev.Index, s.Index-1)
	}
	return prev, nil
}

// link reads the step that s names as the one before it.
func (t *Thread) link(ctx context.Context, s Step) (Step, error) {
	n, err := t.reader.Get(ctx, *s.Prev)
	if err != nil {
		return Step{}, fmt.Errorf("step before %s: %w", s.Hash, err)
	}
	prev, err := t.stepOf(ctx, n)
	if _, ok := errors.AsType[*cas.TypeError](err); ok {
		return Step{}, badLink(s, "is not a step")
	}
	if err == nil && prev.Start != s.Start {
		err = badLink(s, "belongs to another start, %s", prev.Start)
	}
	return prev, err
}

func badLink(s Step, reason string, args ...any) error {
	return &cas.CorruptError{Hash: s.Hash, Reason: fmt.Sprintf("its previous node %s ", *s.Prev) + fmt.Sprintf(reason, args...)}
}

// stepOf decodes a step and checks what can be checked without its neighbours.
func (t *Thread) stepOf(ctx context.Context, n cas.Node) (Step, error) {
	out := Step{Hash: n.Hash, Timestamp: n.Timestamp}
	var err error
	out.Step, err = cas.As[protocol.Step](ctx, t.reader, n)
	if _, ok := errors.AsType[*cas.TypeError](err); ok {
		original, ok, failed := cas.OriginalStep(ctx, t.reader, n)
		if failed != nil {
			return Step{}, failed
		}
		if ok {
			out.Step, out.unplaced = original, true
			return out, nil
		}
	}
	if err != nil {
		return Step{}, err
	}
	return out, out.checkPlace()
}

// checkPlace: only the first step has no previous one.
func (s Step) checkPlace() error {
	if s.Index < 0 || (s.Index == 0) != (s.Prev == nil) {
		return &cas.CorruptError{Hash: s.Hash, Reason: fmt.Sprintf("its index is %d, but only the first step, 0, has no previous one", s.Index)}
	}
	return nil
}

// Workflow reads the workflow that the thread runs.
func (t *Thread) Workflow(ctx context.Context) (protocol.Workflow, error) {
	w, err := cas.Read[protocol.Workflow](ctx, t.reader, t.Start.Workflow)
	if err != nil {
		return w, fmt.Errorf("workflow of start %s: %w", t.StartHash, err)
	}
	return w, nil
}
