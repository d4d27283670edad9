// Package memremote implements an in-memory remote for tests.
package memremote

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Remote implements [remote.Remote] in memory.
type Remote struct {
	kinds *cas.Kinds
	a     cas.Algorithm
	now   func() time.Time

	mu      sync.Mutex
	files   map[cas.Hash][]byte
	threads map[string]remote.State
	gone    map[string]bool // removed threads
	buried  []remote.Redaction
	leases  map[string]remote.Lease
	names   map[string]cas.Hash
	objects map[protocol.Tree]remote.Object
}

var _ remote.Remote = (*Remote)(nil)

// New returns an empty remote. now is the clock for its leases.
func New(a cas.Algorithm, now func() time.Time) *Remote {
	return &Remote{
		a: a, kinds: cas.NewKinds(a), now: now, files: map[cas.Hash][]byte{}, threads: map[string]remote.State{},
		gone: map[string]bool{}, leases: map[string]remote.Lease{}, names: map[string]cas.Hash{}, objects: map[protocol.Tree]remote.Object{},
	}
}

// Info implements [remote.Remote].
func (m *Remote) Info(ctx context.Context) (remote.Info, error) {
	return remote.Info{Hash: m.a, Program: "memremote", Objects: true, NowMs: m.now().UnixMilli()}, ctx.Err()
}

// Missing implements [remote.Remote].
func (m *Remote) Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []cas.Hash
	for _, h := range hashes {
		if m.files[h] == nil {
			missing = append(missing, h)
		}
	}
	return missing, cmp.Or(ctx.Err(), remote.CheckHashes(hashes))
}

// Walk implements [remote.Remote].
func (m *Remote) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return remote.Walk(ctx, reader{m}, roots, have)
}

// Get implements [remote.Remote].
func (m *Remote) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
			yield(remote.Record{}, err)
			return
		}
		for _, h := range hashes {
			file := m.file(h)
			if file == nil {
				yield(remote.Record{}, &remote.MissingError{Hash: string(h)})
				return
			}
			if !yield(remote.Record{Hash: h, File: slices.Clone(file)}, ctx.Err()) {
				return
			}
		}
	}
}

func (m *Remote) file(h cas.Hash) []byte {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.files[h]
}

// Put implements [remote.Remote].
func (m *Remote) Put(ctx context.Context, records []remote.Record) (different []cas.Hash, err error) {
	if err := cmp.Or(ctx.Err(), remote.CheckBatch(records)); err != nil {
		return nil, err
	}
	a := m.a
	for _, r := range records {
		if _, _, err := r.Check(a); err != nil {
			return nil, err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, r := range records {
		old := m.files[r.Hash]
		switch {
		case old == nil:
			m.files[r.Hash] = slices.Clone(r.File)
		case cas.IsTombstone(old) != cas.IsTombstone(r.File):
			different = append(different, r.Hash)
		case !cas.IsTombstone(old):
			was, _ := a.UnmarshalFile(r.Hash, old)
			if is, _ := a.UnmarshalFile(r.Hash, r.File); !was.Equal(is) {
				return different, &cas.CollisionError{Hash: r.Hash}
			}
		}
	}
	return different, nil
}

// Thread implements [remote.Remote].
func (m *Remote) Thread(ctx context.Context, thread string) (remote.State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	s, ok := m.threads[thread]
	if !ok {
		return s, cmp.Or(ctx.Err(), m.absent(thread))
	}
	return m.shown(s), ctx.Err()
}

// absent returns the error for a thread that isn't here.
func (m *Remote) absent(thread string) error {
	if m.gone[thread] {
		return &remote.GoneError{Thread: thread}
	}
	return fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
}

// Remove removes a thread for good.
func (m *Remote) Remove(thread string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.threads, thread)
	m.gone[thread] = true
	return nil
}

// shown returns a state with the current lease.
func (m *Remote) shown(s remote.State) remote.State {
	if l := m.lease(s.Thread); l != nil {
		public := l.Public()
		s.Lease = &public
	}
	return s
}

// lease returns the current lease of a thread, or nil.
func (m *Remote) lease(thread string) *remote.Lease {
	l := m.leases[thread]
	if l.LeftMs = l.Until - m.now().UnixMilli(); l.LeftMs <= 0 {
		return nil
	}
	return &l
}

// Threads implements [remote.Remote].
func (m *Remote) Threads(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return func(yield func(remote.State, error) bool) {
		m.mu.Lock()
		all := make([]remote.State, 0, len(m.threads))
		for _, thread := range slices.Sorted(maps.Keys(m.threads)) {
			all = append(all, m.shown(m.threads[thread]))
		}
		m.mu.Unlock()
		if err := ctx.Err(); err != nil {
			yield(remote.State{}, err)
			return
		}
		count := 0
		for _, s := range all {
			if !f.Has(s) {
				continue
			}
			if count++; !yield(s, nil) || count == f.Limit {
				return
			}
		}
	}
}

// Swap implements [remote.Remote].
func (m *Remote) Swap(ctx context.Context, s remote.Swap) error {
	if err := s.Check(); err != nil {
		return err
	}
	if err := remote.CheckComplete(ctx, reader{m}, s.Head, ""); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	var is *remote.State
	if known, ok := m.threads[s.Thread]; ok {
		is = &known
	} else if m.gone[s.Thread] || s.Facts.Parent != nil && m.gone[s.Facts.Parent.Thread] {
		return &remote.GoneError{Thread: s.Thread}
	}
	if err := cmp.Or(ctx.Err(), s.Compare(is), s.CheckFence(m.lease(s.Thread))); err != nil {
		return err
	}
	facts, err := merge(m.threads[s.Thread].Facts, s.Facts)
	if err != nil {
		return err
	}
	m.threads[s.Thread] = remote.State{Thread: s.Thread, Head: s.Head, Ended: s.Ended, Facts: facts}
	return nil
}

// Take implements [remote.Remote].
func (m *Remote) Take(ctx context.Context, thread, holder string, duration time.Duration) (remote.Lease, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckLease(thread, holder, duration)); err != nil {
		return remote.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, known := m.threads[thread]; !known {
		return remote.Lease{}, m.absent(thread)
	}
	if l := m.lease(thread); l != nil {
		return remote.Lease{}, &remote.LeasedError{Lease: l.Public()}
	}
	m.leases[thread] = remote.Lease{Thread: thread, Holder: holder, Fence: m.leases[thread].Fence + 1,
		Until: m.now().Add(duration).UnixMilli()}
	return *m.lease(thread), nil
}

// Renew implements [remote.Remote].
func (m *Remote) Renew(ctx context.Context, thread string, fence int64, duration time.Duration) (remote.Lease, error) {
	if err := cmp.Or(ctx.Err(), remote.CheckDuration(thread, duration)); err != nil {
		return remote.Lease{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	l := m.lease(thread)
	if l == nil || l.Fence != fence {
		return remote.Lease{}, &remote.FenceError{Thread: thread, Fence: fence}
	}
	l.Until = m.now().Add(duration).UnixMilli()
	m.leases[thread] = *l
	return *m.lease(thread), nil
}

// Release implements [remote.Remote].
func (m *Remote) Release(ctx context.Context, thread string, fence int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if l := m.leases[thread]; ctx.Err() == nil && l.Fence == fence {
		l.Until = 0
		m.leases[thread] = l
	}
	return ctx.Err()
}

// Workflows implements [remote.Remote].
func (m *Remote) Workflows(ctx context.Context) ([]heads.Named, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var all []heads.Named
	for _, name := range slices.Sorted(maps.Keys(m.names)) {
		all = append(all, heads.Named{Name: name, Hash: m.names[name]})
	}
	return all, ctx.Err()
}

// Register implements [remote.Remote].
func (m *Remote) Register(ctx context.Context, name string, was, workflow cas.Hash) error {
	if err := cmp.Or(ctx.Err(), remote.CheckName(name, was, workflow)); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.files[workflow] == nil {
		return &remote.MissingError{Hash: string(workflow)}
	}
	if got := m.names[name]; got != was {
		return &remote.NameError{Name: name, Want: was, Got: got}
	}
	m.names[name] = workflow
	return nil
}

// MissingObjects implements [remote.Remote].
func (m *Remote) MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var missing []protocol.Tree
	for _, id := range ids {
		if _, there := m.objects[id]; !there {
			missing = append(missing, id)
		}
	}
	return missing, cmp.Or(ctx.Err(), remote.CheckObjects(ids))
}

// GetObjects implements [remote.Remote].
func (m *Remote) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		if err := cmp.Or(ctx.Err(), remote.CheckObjects(ids)); err != nil {
			yield(remote.Object{}, err)
			return
		}
		for _, id := range ids {
			m.mu.Lock()
			o, there := m.objects[id]
			m.mu.Unlock()
			if !there {
				yield(remote.Object{}, &remote.MissingError{Hash: string(id)})
				return
			}
			o.Content = bytes.Clone(o.Content)
			if !yield(o, ctx.Err()) {
				return
			}
		}
	}
}

// PutObjects implements [remote.Remote].
func (m *Remote) PutObjects(ctx context.Context, objects []remote.Object) error {
	for _, o := range objects {
		if err := cmp.Or(ctx.Err(), o.Check()); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, o := range objects {
		o.Content = bytes.Clone(o.Content)
		m.objects[o.ID] = o
	}
	return ctx.Err()
}

// Redact replaces a node by a tombstone.
func (m *Remote) Redact(thread string, t cas.Tombstone) error {
	file, err := cas.MarshalTombstone(t)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[t.Hash] = file
	m.buried = append(m.buried, remote.Redaction{Hash: t.Hash, Thread: thread, Reason: t.Reason})
	return nil
}

// Redactions implements [remote.Remote].
func (m *Remote) Redactions(ctx context.Context, known string) ([]remote.Redaction, string, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	state := strconv.Itoa(len(m.buried))
	if state == known {
		return nil, state, ctx.Err()
	}
	return slices.Clone(m.buried), state, ctx.Err()
}

// Close implements [remote.Remote]. It keeps the content, so the remote can be used again.
func (m *Remote) Close() error { return nil }

// reader implements [cas.Reader] for the remote's nodes.
type reader struct{ m *Remote }

func (r reader) Algorithm() cas.Algorithm { return r.m.a }
func (r reader) Kinds() *cas.Kinds        { return r.m.kinds }

func (r reader) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	file := r.m.file(h)
	if file == nil {
		return cas.Node{}, cmp.Or(ctx.Err(), fmt.Errorf("%w: %s", cas.ErrNotFound, h))
	}
	return r.Algorithm().UnmarshalFile(h, file)
}

// Kinds returns the kinds of its hash function.
func (m *Remote) Kinds() *cas.Kinds { return m.kinds }

// Reader returns a reader for the nodes of a remote.
func Reader(m *Remote) cas.Reader { return reader{m} }

// merge returns a copy of known with a change applied.
func merge(known, change heads.Facts) (merged heads.Facts, err error) {
	for _, f := range []heads.Facts{known, remote.Shared(change)} {
		data, err := json.Marshal(f)
		if err == nil {
			err = json.Unmarshal(data, &merged)
		}
		if err != nil {
			return known, err
		}
	}
	return merged, nil
}
