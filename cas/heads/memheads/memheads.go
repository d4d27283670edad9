// Package memheads keeps heads in memory, for tests and for programs whose threads needn't persist.
package memheads

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Heads is a [heads.Heads] in memory. The zero value is empty and ready to use.
type Heads struct {
	mu     sync.Mutex
	active map[string]protocol.Hash
	ended  []heads.Ended // newest last, one per thread
	facts  map[string]heads.Facts
}

// Head implements [heads.Heads].
func (m *Heads) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	h, ok := m.active[thread]
	if !ok {
		return "", cmp.Or(ctx.Err(), fmt.Errorf("%w: %s is not active", heads.ErrNoThread, thread))
	}
	return h, ctx.Err()
}

// Heads implements [heads.Heads].
func (m *Heads) Heads(ctx context.Context) iter.Seq2[heads.Head, error] {
	return func(yield func(heads.Head, error) bool) {
		m.mu.Lock()
		active := maps.Clone(m.active)
		m.mu.Unlock()
		if err := ctx.Err(); err != nil {
			yield(heads.Head{}, err)
			return
		}
		for _, thread := range slices.Sorted(maps.Keys(active)) {
			if !yield(heads.Head{Thread: thread, Hash: active[thread]}, nil) {
				return
			}
		}
	}
}

// Add implements [heads.Heads].
func (m *Heads) Add(ctx context.Context, thread string, head protocol.Hash, facts heads.Facts) error {
	return m.AddAll(ctx, []heads.New{{Head: heads.Head{Thread: thread, Hash: head}, Facts: facts}})
}

// AddAll implements [heads.Heads].
func (m *Heads) AddAll(ctx context.Context, threads []heads.New) error {
	return m.change(ctx, func() error {
		for _, t := range threads {
			if err := check(t.Thread, t.Hash); err != nil {
				return err
			}
			if _, active := m.active[t.Thread]; active || m.end(t.Thread) >= 0 {
				return fmt.Errorf("thread %s %w", t.Thread, heads.ErrExists)
			}
		}
		for _, t := range threads {
			if err := m.learn(t.Thread, t.Facts); err != nil {
				return err
			}
			m.set(t.Thread, t.Hash)
		}
		return nil
	})
}

// Move implements [heads.Heads].
func (m *Heads) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	return m.change(ctx, func() error {
		if err := check(thread, new); err != nil {
			return err
		}
		if err := m.expect(thread, old); err != nil {
			return err
		}
		m.set(thread, new)
		return nil
	})
}

// Ended implements [heads.Heads].
func (m *Heads) Ended(ctx context.Context, thread string) (heads.Ended, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return heads.Ended{}, err
	}
	_, active := m.active[thread]
	at := m.end(thread)
	if active || at < 0 {
		return heads.Ended{}, fmt.Errorf("%w: %s has not ended", heads.ErrNoThread, thread)
	}
	return m.ended[at], nil
}

// History implements [heads.Heads].
func (m *Heads) History(ctx context.Context) iter.Seq2[heads.Ended, error] {
	return func(yield func(heads.Ended, error) bool) {
		m.mu.Lock()
		ended := slices.DeleteFunc(slices.Clone(m.ended), func(e heads.Ended) bool {
			_, active := m.active[e.Thread]
			return active
		})
		m.mu.Unlock()
		if err := ctx.Err(); err != nil {
			yield(heads.Ended{}, err)
			return
		}
		for _, e := range ended {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// Archive implements [heads.Heads].
func (m *Heads) Archive(ctx context.Context, e heads.Ended) error {
	return m.change(ctx, func() error {
		if err := check(e.Thread, e.Head); err != nil {
			return err
		}
		if e.Status == "" || e.Status == protocol.StatusResumed {
			return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("a thread cannot end with status %q",
				e.Status)}
		}
		if err := m.expect(e.Thread, e.Head); err != nil {
			return err
		}
		delete(m.active, e.Thread)
		m.forget(e.Thread)
		m.ended = append(m.ended, e)
		return nil
	})
}

// Reopen implements [heads.Heads].
func (m *Heads) Reopen(ctx context.Context, e heads.Ended, _ int64) error {
	return m.change(ctx, func() error {
		if _, active := m.active[e.Thread]; active {
			return fmt.Errorf("thread %s %w", e.Thread, heads.ErrExists)
		}
		at := m.end(e.Thread)
		if at < 0 {
			return fmt.Errorf("%w: %s", heads.ErrNoThread, e.Thread)
		}
		if got := m.ended[at].Head; got != e.Head {
			return &heads.ConflictError{Thread: e.Thread, Want: e.Head, Got: got}
		}
		m.set(e.Thread, e.Head)
		return nil
	})
}

// Facts implements [heads.Heads].
func (m *Heads) Facts(ctx context.Context, thread string) (heads.Facts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.facts[thread], ctx.Err()
}

// AllFacts implements [heads.Heads].
func (m *Heads) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return maps.Clone(m.facts), ctx.Err()
}

// SetFacts implements [heads.Heads].
func (m *Heads) SetFacts(ctx context.Context, thread string, change heads.Facts) error {
	return m.change(ctx, func() error { return m.learn(thread, change) })
}

// Forget removes ended threads and their facts; see prune.Index.
func (m *Heads) Forget(ctx context.Context, threads map[string]bool) (forgotten []heads.Ended, err error) {
	err = m.change(ctx, func() error {
		for _, e := range slices.Clone(m.ended) {
			if _, active := m.active[e.Thread]; threads[e.Thread] && !active {
				m.forget(e.Thread)
				delete(m.facts, e.Thread)
				forgotten = append(forgotten, e)
			}
		}
		return nil
	})
	return forgotten, err
}

func (m *Heads) change(ctx context.Context, do func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return err
	}
	return do()
}

func (m *Heads) set(thread string, h protocol.Hash) {
	if m.active == nil {
		m.active = map[string]protocol.Hash{}
	}
	m.active[thread] = h
}

// learn merges facts: fields that JSON omits from the change stay unchanged.
func (m *Heads) learn(thread string, change heads.Facts) error {
	data, err := json.Marshal(change)
	if err != nil || string(data) == "{}" {
		return err
	}
	known := m.facts[thread]
	if err := json.Unmarshal(data, &known); err != nil {
		return err
	}
	if m.facts == nil {
		m.facts = map[string]heads.Facts{}
	}
	m.facts[thread] = known
	return nil
}

// end returns the index of a thread's end, or -1.
func (m *Heads) end(thread string) int {
	return slices.IndexFunc(m.ended, func(e heads.Ended) bool { return e.Thread == thread })
}

func (m *Heads) forget(thread string) {
	if at := m.end(thread); at >= 0 {
		m.ended = slices.Delete(m.ended, at, at+1)
	}
}

// expect implements the compare of compare-and-swap.
func (m *Heads) expect(thread string, want protocol.Hash) error {
	if got := m.active[thread]; got == "" || got != want {
		return &heads.ConflictError{Thread: thread, Want: want, Got: got}
	}
	return nil
}

func check(thread string, head protocol.Hash) error {
	if thread == "" || !head.Valid() {
		return &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("thread %q cannot have the head %q",
			thread, head)}
	}
	return nil
}
