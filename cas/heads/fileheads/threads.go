package fileheads

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Head returns an active thread's head, or [heads.ErrNoThread].
func (x *Heads) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	h, err := x.active(ctx, thread)
	if err == nil && h == "" {
		return "", fmt.Errorf("%w: %s is not active", heads.ErrNoThread, thread)
	}
	return h, err
}

// active returns an active thread's head, "" if it is not active.
func (x *Heads) active(ctx context.Context, thread string) (protocol.Hash, error) {
	if x.Now == nil && ctx.Err() == nil {
		if h, ok := x.seek(thread); ok {
			return h, nil
		}
	}
	f, err := x.look(ctx)
	if err != nil {
		return "", err
	}
	return f.get(thread)
}

// Heads yields the active threads, sorted by id, followed by an error for each unreadable line.
func (x *Heads) Heads(ctx context.Context) iter.Seq2[heads.Head, error] {
	return func(yield func(heads.Head, error) bool) {
		f, err := x.look(ctx)
		if err != nil {
			yield(heads.Head{}, err)
			return
		}
		for thread, h := range f.all {
			if !yield(heads.Head{Thread: thread, Hash: h}, nil) {
				return
			}
		}
		for _, err := range f.problems() {
			if !yield(heads.Head{}, err) {
				return
			}
		}
	}
}

// Damage returns the problems in the lines of active and ended threads, or nil. A thread that isn't found
// might be in one of them.
func (x *Heads) Damage(ctx context.Context) error {
	faults := []error{x.DamagedHeads(ctx)}
	for _, err := range x.History(ctx) {
		faults = append(faults, err)
	}
	return errors.Join(faults...)
}

// DamagedHeads is [Heads.Damage] for active threads only. A thread in the history might be active again in an
// unreadable line.
func (x *Heads) DamagedHeads(ctx context.Context) error {
	f, err := x.look(ctx)
	if err != nil {
		return err
	}
	f.ensureParsed()
	return errors.Join(f.problems()...)
}

// Add adds an active thread with its facts; [heads.ErrExists] if it is active or has ended.
func (x *Heads) Add(ctx context.Context, thread string, head protocol.Hash, facts heads.Facts) error {
	return x.AddAll(ctx, []heads.New{{Head: heads.Head{Thread: thread, Hash: head}, Facts: facts}})
}

// AddAll is [Heads.Add] for many, in one change.
func (x *Heads) AddAll(ctx context.Context, threads []heads.New) error {
	for _, t := range threads {
		if err := checkEntry(t.Thread, t.Hash, nil); err != nil {
			return err
		}
	}
	return x.changeThreads(ctx, func(f *table) error {
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

// endedAmong reports which threads have ended. It searches for a single thread from the end of the history,
// where recent ones are; for many it reads the history once.
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

// Move moves a head from old to new; [*heads.ConflictError] if the head isn't old.
func (x *Heads) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	if err := checkEntry(thread, new, nil); err != nil {
		return err
	}
	return x.changeThreads(ctx, func(f *table) error {
		if err := f.expect(thread, old); err != nil {
			return err
		}
		f.set(thread, new)
		return nil
	})
}

// Archive ends a thread whose head is e.Head; [*heads.ConflictError] if it is not.
func (x *Heads) Archive(ctx context.Context, e heads.Ended) error {
	if err := checkEntry(e.Thread, e.Head, &e); err != nil {
		return err
	}
	return x.changeThreads(ctx, func(f *table) error {
		if err := f.expect(e.Thread, e.Head); err != nil {
			return err
		}
		f.remove(e.Thread)
		return x.appendLines(ctx, []heads.Ended{e})
	})
}

// Reopen reactivates an ended thread at its last head; e is its newest history line ([Heads.Ended]). Errors:
// [heads.ErrExists] if it is already active, [heads.ErrNoThread], [*heads.ConflictError] if it has ended
// differently since.
func (x *Heads) Reopen(ctx context.Context, e heads.Ended, atMs int64) error {
	return x.changeThreads(ctx, func(f *table) error {
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
		return x.appendLines(ctx, []heads.Ended{last})
	})
}

// changeThreads edits threads.yaml under its lock. What edit writes to the history is durable before
// threads.yaml changes.
func (x *Heads) changeThreads(ctx context.Context, edit func(f *table) error) error {
	return x.locked(ctx, threadsLock, func() error {
		f, err := x.read(ctx, threadsFile)
		if err != nil {
			return err
		}
		if err := edit(f); err != nil {
			return err
		}
		return x.saveThreads(f)
	})
}

// saveThreads saves threads.yaml with the length of facts.jsonl.
func (x *Heads) saveThreads(f *table) error {
	size, err := x.factsSize(f.minFacts)
	if err != nil {
		return err
	}
	f.minFacts = max(f.minFacts, size)
	return x.save(f)
}

// expect implements the compare of compare-and-swap.
func (t *table) expect(thread string, want protocol.Hash) error {
	got, err := t.get(thread)
	if err != nil {
		return err
	}
	if got == "" || got != want {
		return &heads.ConflictError{Thread: thread, Want: want, Got: got}
	}
	return nil
}

// Adopt applies many adoptions in one change of each file: facts first, then the history. An interruption
// leaves threads active that should have ended, or unknown that should be active; adopting again completes
// it. It returns a [*heads.ConflictError], without any change, if a thread has moved.
func (x *Heads) Adopt(ctx context.Context, all []heads.Adoption, atMs int64) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	for _, a := range all {
		if err := checkEntry(a.Thread, a.Head, a.End); err != nil {
			return err
		}
	}
	return x.changeThreads(ctx, func(f *table) error {
		ends, damaged, err := x.lastEnds()
		if err != nil {
			return err
		}
		var lines []heads.Ended
		facts := map[string]heads.Facts{}
		for _, a := range all {
			ended, hasEnded := ends[a.Thread]
			if damaged {
				// An unreadable line might be this thread's end.
				if _, err := x.lastEnd(a.Thread); err != nil && !errors.Is(err, heads.ErrNoThread) {
					return err
				}
			}
			if err := compare(a, f, ended.Head); err != nil {
				return err
			}
			if line, ok := lineFor(a, f, ended, hasEnded, atMs); ok {
				lines = append(lines, line)
			}
			facts[a.Thread] = a.Facts
			if a.End == nil {
				f.set(a.Thread, a.Head)
			} else {
				f.remove(a.Thread)
			}
		}
		if err := x.appendFacts(ctx, f, facts); err != nil {
			return err
		}
		return x.appendLines(ctx, lines)
	})
}

// compare implements the compare of compare-and-swap; ended is the head at which the thread ended, or "".
func compare(a heads.Adoption, f *table, ended protocol.Hash) error {
	got, err := f.get(a.Thread)
	if err != nil {
		return err
	}
	if got == "" {
		got = ended
	}
	if got != a.Was {
		return &heads.ConflictError{Thread: a.Thread, Want: a.Was, Got: got}
	}
	return nil
}

// lineFor returns the history line for an adoption, if one is needed.
func lineFor(a heads.Adoption, f *table, ended heads.Ended, hasEnded bool, atMs int64) (heads.Ended, bool) {
	active, _ := f.get(a.Thread) // compare has checked it
	switch {
	case a.End != nil:
		line := *a.End
		line.Thread, line.Head = a.Thread, a.Head
		return line, true
	case hasEnded && active == "":
		ended.Status, ended.CompletedAt = protocol.StatusResumed, atMs
		return ended, true
	}
	return heads.Ended{}, false
}

// checkEntry rejects values that a line can't represent. The thread is active if end is nil.
func checkEntry(thread string, head protocol.Hash, end *heads.Ended) error {
	problem := threadProblem(thread)
	if problem == "" && !head.Valid() {
		problem = fmt.Sprintf("%q is not a hash", head)
	}
	if problem == "" && end != nil {
		as := *end
		as.Head = head
		if err := as.Check(); err != nil {
			problem = err.Error()
		}
	}
	if problem == "" {
		return nil
	}
	return &protocol.Error{Code: protocol.CodeInvalid, Message: problem}
}
