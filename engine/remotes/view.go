package remotes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/memheads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// View returns an engine that shows threads as they stand at the remote, and who works on
// them. It reads only the nodes that it needs, and stores none.
func (l *Link) View(ctx context.Context, f remote.Filter) (*engine.Engine, map[string]remote.Lease, error) {
	return l.view(ctx, l.list(ctx, f))
}

// list yields the threads of the remote. One whose entry is damaged is its own fault, not the list's:
// a warning names it.
func (l *Link) list(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return func(yield func(remote.State, error) bool) {
		for s, err := range l.Remote.Threads(ctx, f) {
			if err == nil && s.Fault == "" {
				if wrong := checkState(s.Thread, s); wrong != nil {
					s.Fault = wrong.Error()
				} else if !threadid.Valid(s.Thread) {
					s.Fault = "it is no thread id"
				}
			}
			if err == nil && s.Fault != "" {
				l.warn("thread %s is damaged at %s and left out of the list: %s",
					place.Shown(s.Thread), l.Name, plaintext.Line(s.Fault))
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// ViewOf is View for one thread, with its children.
func (l *Link) ViewOf(ctx context.Context, thread string) (*engine.Engine, error) {
	if _, err := l.Remote.Thread(ctx, thread); err != nil {
		return nil, l.of(thread, err)
	}
	e, _, err := l.view(ctx, l.ofTime(ctx, thread))
	return e, err
}

// ofTime yields the threads whose ids begin with the same time as that of a thread: it and its
// children are among them.
func (l *Link) ofTime(ctx context.Context, thread string) iter.Seq2[remote.State, error] {
	return func(yield func(remote.State, error) bool) {
		const timeDigits = 10
		begin := thread[:timeDigits]
		for s, err := range l.list(ctx, remote.Filter{After: begin + strings.Repeat("0", len(thread)-timeDigits)}) {
			if err == nil && !strings.HasPrefix(s.Thread, begin) || !yield(s, err) || err != nil {
				return
			}
		}
	}
}

func (l *Link) view(ctx context.Context, states iter.Seq2[remote.State, error]) (*engine.Engine, map[string]remote.Lease, error) {
	index, leases := &memheads.Heads{}, map[string]remote.Lease{}
	var add []heads.New
	var ends []heads.Ended
	var wanted []cas.Hash
	for s, err := range states {
		if err == nil && len(add) == remote.MaxThreads {
			err = &remote.LimitError{Most: remote.MaxThreads, Of: "threads"}
		}
		if err != nil {
			return nil, nil, l.of("", err)
		}
		p := pulling{Link: l, at: map[string]remote.State{s.Thread: s}}
		facts := p.taken(s.Thread)
		facts.Remote, facts.Parent = nil, s.Facts.Parent
		facts.Imported = &heads.Imported{From: "remote " + l.Name, Confirmed: true}
		add = append(add, heads.New{Head: heads.Head{Thread: s.Thread, Hash: s.Head}, Facts: facts})
		wanted = append(wanted, s.Head)
		if e := s.Ended; e != nil {
			ends = append(ends, heads.Ended{Thread: s.Thread, Workflow: e.Workflow, Head: s.Head, Status: e.Status, CompletedAt: e.CompletedAt})
		}
		if s.Lease != nil {
			leases[s.Thread] = *s.Lease
		}
	}
	if err := index.AddAll(ctx, add); err != nil {
		return nil, nil, l.of("", err)
	}
	for _, e := range ends {
		if err := index.Archive(ctx, e); err != nil {
			return nil, nil, l.of("", err)
		}
	}
	nodes := &reader{link: l, base: l.Store, nodes: map[cas.Hash]cas.Node{}}
	if err := nodes.load(ctx, wanted); err != nil {
		return nil, nil, l.of("", err)
	}
	with := *l.Engine
	with.Store, with.Heads, with.ReadOnly = nodes, index, true
	return &with, leases, nil
}

// reader reads the nodes of a remote, but first those of the home.
type reader struct {
	link *Link
	base cas.Store

	mu    sync.Mutex
	nodes map[cas.Hash]cas.Node
	size  int
}

// maxRead bounds what is kept of a remote's nodes, in bytes.
const maxRead = 64 << 20

// load reads heads, and what each step needs to be shown, all at once.
func (r *reader) load(ctx context.Context, wanted []cas.Hash) error {
	if err := r.read(ctx, wanted); err != nil {
		return err
	}
	var more []cas.Hash
	for _, h := range wanted {
		if step, err := cas.Read[protocol.Step](ctx, r, h); err == nil {
			more = append(more, step.Start, step.Output)
		}
	}
	return r.read(ctx, more)
}

// read reads nodes that are neither here nor read already.
func (r *reader) read(ctx context.Context, wanted []cas.Hash) error {
	var lacking []cas.Hash
	asked := map[cas.Hash]bool{}
	for _, h := range wanted {
		here, err := r.base.Has(ctx, h)
		if err != nil {
			return err
		}
		r.mu.Lock()
		_, known := r.nodes[h]
		r.mu.Unlock()
		if !here && !known && !asked[h] {
			asked[h], lacking = true, append(lacking, h)
		}
	}
	for record, err := range remote.GetAll(ctx, r.link.Remote, lacking) {
		if err != nil {
			return err
		}
		n, _, err := record.Check(r.Algorithm())
		switch {
		case err != nil:
			return err
		case n.Hash == "" || !asked[n.Hash]:
			continue // redacted: who needs it is told
		}
		r.keep(n)
	}
	return nil
}

func (r *reader) keep(n cas.Node) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.size += len(n.Payload); r.size > maxRead {
		clear(r.nodes)
		r.size = len(n.Payload)
	}
	r.nodes[n.Hash] = n
}

// Get implements [cas.Getter].
func (r *reader) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	n, err := r.base.Get(ctx, h)
	if !errors.Is(err, cas.ErrNotFound) {
		return n, err
	}
	r.mu.Lock()
	n, known := r.nodes[h]
	r.mu.Unlock()
	if known {
		return n, nil
	}
	for record, err := range r.link.Remote.Get(ctx, []cas.Hash{h}) {
		if err != nil {
			return cas.Node{}, err
		}
		if record.Hash != h {
			return cas.Node{}, remote.Faultf("it sends node %q, which nobody has asked for", record.Hash)
		}
		n, err := r.Algorithm().UnmarshalFile(h, record.File)
		if err == nil {
			err = r.Algorithm().Check(n)
		}
		if err == nil {
			r.keep(n)
		}
		return n, err
	}
	return cas.Node{}, fmt.Errorf("%w: %s", cas.ErrNotFound, h)
}

// Has implements [cas.Store].
func (r *reader) Has(ctx context.Context, h cas.Hash) (bool, error) {
	_, err := r.Get(ctx, h)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Algorithm implements [cas.Reader].
func (r *reader) Algorithm() cas.Algorithm { return r.base.Algorithm() }

// Kinds implements [cas.Reader].
func (r *reader) Kinds() *cas.Kinds { return r.base.Kinds() }

// All implements [cas.Store]: a remote does not list its nodes.
func (r *reader) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	return r.base.All(ctx, prefix)
}

// Put implements [cas.Store]: it always fails.
func (r *reader) Put(context.Context, ...cas.Node) error { return cas.ErrReadOnly }

// Commit implements [cas.Store]: it always fails.
func (r *reader) Commit(context.Context, ...cas.Node) error { return cas.ErrReadOnly }

// Like returns the ids of threads at the remote that begin or end with part and are nobody's
// child.
func (l *Link) Like(ctx context.Context, part string) (ids []string, err error) {
	for s, err := range l.list(ctx, remote.Filter{}) {
		if err != nil {
			return nil, l.of("", err)
		}
		if s.Facts.Parent == nil && (strings.HasPrefix(s.Thread, part) || strings.HasSuffix(s.Thread, part)) {
			if ids = append(ids, s.Thread); len(ids) == maxLike {
				break
			}
		}
	}
	return ids, nil
}

// maxLike bounds how many threads are listed for a person.
const maxLike = 20
