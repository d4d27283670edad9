package fileheads

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Head returns an active thread's head, or [heads.ErrNoThread].
func (x *Heads) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	f, err := x.read(ctx, threadsFile)
	if err != nil {
		return "", err
	}
	defer x.done(f)
	h, err := f.get(thread)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s is not active", heads.ErrNoThread, thread)
	}
	return h, err
}

// Heads yields the active threads, sorted by id, and then an error for each line
// that cannot be read.
func (x *Heads) Heads(ctx context.Context) iter.Seq2[heads.Head, error] {
	return func(yield func(heads.Head, error) bool) {
		f, err := x.read(ctx, threadsFile)
		if err != nil {
			yield(heads.Head{}, err)
			return
		}
		if f.ours != nil {
			for text := string(f.ours.text); text != ""; text = text[headLine:] {
				if !yield(heads.Head{Thread: text[:threadid.Len], Hash: protocol.Hash(text[threadid.Len+len(": ") : headLine-1])}, nil) {
					return
				}
			}
			return
		}
		t := f.table
		for _, e := range t.entries {
			if !yield(heads.Head{Thread: e.key, Hash: e.hash}, nil) {
				return
			}
		}
		for _, b := range t.bad {
			if !yield(heads.Head{}, t.problem(b)) {
				return
			}
		}
	}
}

// Damage is what is wrong with the lines of the active threads, and of those that
// have ended; nil: nothing. A thread that is not found may be in one of them.
func (x *Heads) Damage(ctx context.Context) error {
	faults := []error{x.DamagedHeads(ctx)}
	for _, err := range x.History(ctx) {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// DamagedHeads is [Heads.Damage] of the active threads only. One that the history
// knows may be active again, in a line that cannot be read.
func (x *Heads) DamagedHeads(ctx context.Context) error {
	f, err := x.read(ctx, threadsFile)
	if err != nil || f.ours != nil {
		return err
	}
	return f.table.problems()
}

// Add adds an active thread with what is known of it; [heads.ErrExists] if it is
// active or has ended.
func (x *Heads) Add(ctx context.Context, thread string, head protocol.Hash, facts heads.Facts) error {
	return x.AddAll(ctx, []heads.New{{Head: heads.Head{Thread: thread, Hash: head}, Facts: facts}})
}

// AddAll is [Heads.Add] for many, in one change.
func (x *Heads) AddAll(ctx context.Context, threads []heads.New) error {
	for _, t := range threads {
		if err := checkThread(t.Thread, t.Hash); err != nil {
			return err
		}
	}
	return x.changeThreads(ctx, func(f *file) error {
		ended, err := x.endedAmong(threads)
		if err != nil {
			return err
		}
		facts := make(map[string]heads.Facts, len(threads))
		for _, t := range threads {
			old, err := f.get(t.Thread)
			if err != nil {
				return err
			}
			if old != "" || ended(t.Thread) {
				return fmt.Errorf("thread %s %w", t.Thread, heads.ErrExists)
			}
			f.set(t.Thread, t.Hash)
			facts[t.Thread] = t.Facts
		}
		return x.appendFacts(ctx, f, facts)
	})
}

// endedAmong tells which threads have ended. One is looked for from the end of the
// history, where the young ones are; many are worth reading it once.
func (x *Heads) endedAmong(threads []heads.New) (func(thread string) bool, error) {
	const few = 3
	if len(threads) > few {
		ends, _, err := x.lastEnds()
		return func(thread string) bool { _, has := ends[thread]; return has }, err
	}
	has := map[string]bool{}
	for _, t := range threads {
		_, err := x.lastEnd(t.Thread)
		if err != nil && !errors.Is(err, heads.ErrNoThread) {
			return nil, err
		}
		has[t.Thread] = err == nil
	}
	return func(thread string) bool { return has[thread] }, nil
}

// Move moves a head from old to new; [*heads.ConflictError] if it is not at old.
func (x *Heads) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
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

// Archive ends a thread whose head is e.Head; [*heads.ConflictError] if it is not.
func (x *Heads) Archive(ctx context.Context, e heads.Ended) error {
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
// newest history line ([Heads.Ended]). Errors: [heads.ErrExists] if it is active
// again already, [heads.ErrNoThread], [*heads.ConflictError] if it has ended elsewhere since.
func (x *Heads) Reopen(ctx context.Context, e heads.Ended, atMs int64) error {
	return x.changeThreads(ctx, func(f *file) error {
		active, err := f.get(e.Thread)
		if err != nil {
			return err
		}
		if active != "" {
			return fmt.Errorf("thread %s %w", e.Thread, heads.ErrExists)
		}
		last, err := x.lastEnd(e.Thread)
		if err != nil {
			return err
		}
		if last.Head != e.Head {
			return &heads.ConflictError{Thread: e.Thread, Want: e.Head, Got: last.Head}
		}
		f.set(e.Thread, e.Head)
		last.Status, last.CompletedAt = protocol.StatusResumed, atMs
		return x.appendHistory(ctx, last)
	})
}

// changeThreads edits threads.yaml under its lock. What edit writes into the
// history is durable before threads.yaml changes.
func (x *Heads) changeThreads(ctx context.Context, edit func(f *file) error) error {
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
		return x.saveThreads(f)
	})
}

// saveThreads saves threads.yaml, and what it says of the facts.
func (x *Heads) saveThreads(f *file) error {
	if isThere(x.path(factsFile)) {
		if f.facts < 0 {
			data, err := x.readLog(factsFile)
			if err != nil {
				return err
			}
			f.facts = countLines(data[:bytes.LastIndexByte(data, '\n')+1]) // of a torn one nobody was told
		}
		f.sayFacts()
	}
	return x.save(f)
}

// expect is the compare of compare-and-swap.
func (f *file) expect(thread string, want protocol.Hash) error {
	got, err := f.get(thread)
	if err != nil {
		return err
	}
	if got == "" || got != want {
		return &heads.ConflictError{Thread: thread, Want: want, Got: got}
	}
	return nil
}
