package fileheads

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Head is an active thread.
type Head struct {
	Thread string
	Hash   protocol.Hash
}

// Head returns an active thread's head, or [ErrNoThread].
func (x *Index) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	f, err := x.read(ctx, threadsFile)
	if err != nil {
		return "", err
	}
	defer x.done(f)
	h, err := f.get(thread)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s is not active", ErrNoThread, thread)
	}
	return h, err
}

// Heads yields the active threads, sorted by id, and then an error for each line
// that cannot be read.
func (x *Index) Heads(ctx context.Context) iter.Seq2[Head, error] {
	return func(yield func(Head, error) bool) {
		f, err := x.read(ctx, threadsFile)
		if err != nil {
			yield(Head{}, err)
			return
		}
		if f.ours != nil {
			for text := string(f.ours.text); text != ""; text = text[headLine:] {
				if !yield(Head{Thread: text[:threadid.Len], Hash: protocol.Hash(text[threadid.Len+len(": ") : headLine-1])}, nil) {
					return
				}
			}
			return
		}
		t := f.table
		for _, e := range t.entries {
			if !yield(Head{Thread: e.key, Hash: e.hash}, nil) {
				return
			}
		}
		for _, b := range t.bad {
			if !yield(Head{}, t.problem(b)) {
				return
			}
		}
	}
}

// Damage is what is wrong with the lines of the active threads, and of those that
// have ended; nil: nothing. A thread that is not found may be in one of them.
func (x *Index) Damage(ctx context.Context) error {
	faults := []error{x.DamagedHeads(ctx)}
	for _, err := range x.History(ctx) {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// DamagedHeads is [Index.Damage] of the active threads only. One that the history
// knows may be active again, in a line that cannot be read.
func (x *Index) DamagedHeads(ctx context.Context) error {
	f, err := x.read(ctx, threadsFile)
	if err != nil || f.ours != nil {
		return err
	}
	return f.table.problems()
}

// Add adds an active thread; [ErrExists] if it is active or has ended.
func (x *Index) Add(ctx context.Context, thread string, head protocol.Hash) error {
	return x.AddWith(ctx, thread, head, Facts{})
}

// AddWith is [Index.Add] of a thread of which something is known.
func (x *Index) AddWith(ctx context.Context, thread string, head protocol.Hash, facts Facts) error {
	if err := checkThread(thread, head); err != nil {
		return err
	}
	return x.changeThreads(ctx, func(f *file) error {
		old, err := f.get(thread)
		if err != nil {
			return err
		}
		_, err = x.lastEnd(thread)
		if old != "" || err == nil {
			return fmt.Errorf("thread %s %w", thread, ErrExists)
		}
		if !errors.Is(err, ErrNoThread) {
			return err
		}
		f.set(thread, head)
		return x.appendFacts(ctx, map[string]Facts{thread: facts})
	})
}

// Move moves a head from old to new; [*ConflictError] if it is not at old.
func (x *Index) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	if err := checkThread(thread, new); err != nil {
		return err
	}
	return x.changeThreads(ctx, func(f *file) error {
		if err := f.expect(thread, old); err != nil {
			return err
		}
		f.set(thread, new)
		return nil
	})
}

// Archive ends a thread whose head is e.Head; [*ConflictError] if it is not.
func (x *Index) Archive(ctx context.Context, e Ended) error {
	if err := checkThread(e.Thread, e.Head); err != nil {
		return err
	}
	if e.Status == "" || e.Status == protocol.StatusResumed {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("a thread cannot end with status %q", e.Status)}
	}
	return x.changeThreads(ctx, func(f *file) error {
		if err := f.expect(e.Thread, e.Head); err != nil {
			return err
		}
		f.remove(e.Thread)
		return x.appendHistory(ctx, e)
	})
}

// Reopen makes an ended thread active again at the head it ended with; e is its
// newest history line ([Index.Ended]). Errors: [ErrExists] if it is active
// again already, [ErrNoThread], [*ConflictError] if it has ended elsewhere since.
func (x *Index) Reopen(ctx context.Context, e Ended, atMs int64) error {
	return x.changeThreads(ctx, func(f *file) error {
		active, err := f.get(e.Thread)
		if err != nil {
			return err
		}
		if active != "" {
			return fmt.Errorf("thread %s %w", e.Thread, ErrExists)
		}
		last, err := x.lastEnd(e.Thread)
		if err != nil {
			return err
		}
		if last.Head != e.Head {
			return &ConflictError{Thread: e.Thread, Want: e.Head, Got: last.Head}
		}
		f.set(e.Thread, e.Head)
		last.Status, last.CompletedAt = protocol.StatusResumed, atMs
		return x.appendHistory(ctx, last)
	})
}

// changeThreads edits threads.yaml under its lock. What edit writes into the
// history is durable before threads.yaml changes.
func (x *Index) changeThreads(ctx context.Context, edit func(f *file) error) error {
	return x.locked(ctx, threadsLock, func() error {
		f, err := x.read(ctx, threadsFile)
		if err != nil {
			return err
		}
		defer x.done(f)
		if err := f.writable(); err != nil {
			return err
		}
		if err := edit(f); err != nil {
			return err
		}
		if isThere(x.path(factsFile)) {
			f.sayFacts()
		}
		return x.save(f)
	})
}

// expect is the compare of compare-and-swap.
func (f *file) expect(thread string, want protocol.Hash) error {
	got, err := f.get(thread)
	if err != nil {
		return err
	}
	if got == "" || got != want {
		return &ConflictError{Thread: thread, Want: want, Got: got}
	}
	return nil
}
