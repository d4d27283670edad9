// Package remotes pushes threads to remotes, pulls them, and makes steps of threads at a remote.
//
//   - push.go: sends what the remote lacks, then moves its head by compare-and-swap;
//   - pull.go: fetches what is missing here, checks it like a bundle, then moves all heads in one change;
//   - files.go: transfers the git objects of the threads' files, both ways.
//
// A step of a thread at a remote (pull.go) consists of taking the lease, a pull, the step, and a push.
//
// For each thread, the facts record the last head that both sides shared (Facts.Remote). A side that has not
// moved since is behind. If both have moved, the thread has diverged, and nothing is overwritten: a user
// decides what happens to it.
package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/threadid"
)

// Link connects a home and a remote. Errors of its methods are *protocol.Error.
type Link struct {
	Name    string // the home's name for the remote
	Address string
	Remote  remote.Remote
	Engine  *engine.Engine
	Store   *fsstore.Store
	Heads   *fileheads.Heads
	Holder  string                // holder of leases, as shown to users
	Warn    func(string)          // called with warnings
	Suggest func(protocol.Reason) // called after a warning that a front end has a hint for; nil: no hints
	// Trusted means that commands of threads from this remote run like those of the home's own threads, as
	// the owner of the home has decided.
	Trusted bool
	// Near is a directory whose repository is searched for objects before they are fetched; "" means none.
	Near string

	check  bool // verify what the remote claims to have
	heeded bool // the remote's redactions were carried out
}

// Results for a thread, in addition to those of an import (package bundle).
const (
	Behind   = "behind"   // the remote is ahead; pull to update
	Diverged = "diverged" // both sides have moved
	Failed   = "failed"   // a push failed; the remote may not have the thread
)

// divergedError returns the error for a diverged thread.
func (l *Link) divergedError(thread string, here, there cas.Hash) error {
	return (&protocol.Error{
		Code: protocol.CodeDiverged,
		Message: fmt.Sprintf("thread %s has diverged from %s: its head is %s here, on %s it is %s; nothing was "+
			"overwritten",
			thread, l.Name, here, l.Name, there),
	}).Because("diverged", "thread", thread, "at", l.Name, "head", string(here))
}

// of converts an error into one for users, about a thread unless thread is "".
func (l *Link) of(thread string, err error) error {
	if err == nil {
		return nil
	}
	var (
		known    *protocol.Error
		leased   *remote.LeasedError
		fence    *remote.FenceError
		moved    *remote.ConflictError
		diverged *bundle.ConflictError
		future   *bundle.FutureError
		hash     *bundle.HashError
		wrong    *bundle.FaultError
		link     *bundle.LinkError
		damaged  *remote.FaultError
		missing  *remote.MissingError
		gone     *remote.GoneError
	)
	about := func(code protocol.Code, format string, args ...any) *protocol.Error {
		return &protocol.Error{Code: code, Message: "remote " + l.Name + ": " + fmt.Sprintf(format, args...), Err: err}
	}
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &diverged):
		return l.divergedError(diverged.Thread, diverged.Here, diverged.Bundle)
	case errors.As(err, &leased):
		return about(protocol.CodeLocked, "thread %s is leased by %s for another %s",
			leased.Lease.Thread, plaintext.Line(leased.Lease.Holder),
			protocol.Span(max((time.Duration(leased.Lease.LeftMs)*time.Millisecond).Round(time.Second),
				time.Second))).Because("leased", "at", l.Name)
	case errors.As(err, &fence):
		return about(protocol.CodeLocked, "the lease of thread %s has expired; another worker may have it", fence.Thread)
	case errors.As(err, &moved) && moved.Got == "":
		return about(protocol.CodeHeadMoved, "thread %s has moved on the remote", moved.Thread)
	case errors.As(err, &moved):
		return about(protocol.CodeHeadMoved, "thread %s has moved on the remote: it is at %s", moved.Thread, moved.Got)
	case errors.As(err, &future):
		return about(protocol.CodeInvalid, "%v", err)
	case errors.As(err, &hash):
		return about(protocol.CodeInvalid, "it has %s hashes, but this store has %s; nodes cannot be copied", hash.Bundle, hash.Store)
	case errors.As(err, &link):
		return about(protocol.CodeInvalid, "%v; nothing was pulled", link).Because("links-elsewhere", "thread", thread,
			"at", l.Name)
	case errors.As(err, &wrong):
		return about(protocol.CodeCorrupt, "invalid data received: %v", wrong.Err)
	case errors.As(err, &missing):
		return about(protocol.CodeCorrupt, "thread %s is incomplete there: %s is missing", thread,
			plaintext.Line(missing.Hash))
	case errors.As(err, &damaged):
		return about(protocol.CodeCorrupt, "%v", damaged)
	case errors.As(err, &gone):
		return about(protocol.CodeGone, "thread %s was removed there", plaintext.Line(cmp.Or(thread, gone.Thread))).
			Because("gone-there", "thread", cmp.Or(thread, gone.Thread))
	case errors.Is(err, heads.ErrNoThread) && thread != "":
		return about(protocol.CodeNotFound, "no thread %s", thread).Because("no-thread-there", "at", l.Name)
	}
	return fault.Of(fmt.Errorf("remote %s: %w", l.Name, err))
}

func (l *Link) warn(format string, args ...any) {
	if l.Warn != nil {
		l.Warn(fmt.Sprintf(format, args...))
	}
}

func (l *Link) suggest(why protocol.Reason) {
	if l.Suggest != nil {
		l.Suggest(why)
	}
}

// standing returns the local state of a thread; known is false if it doesn't exist here.
func (l *Link) standing(ctx context.Context, thread string) (at heads.ThreadState, known bool, err error) {
	at, err = heads.Find(ctx, l.Heads, thread)
	if errors.Is(err, heads.ErrNoThread) {
		return at, false, nil
	}
	return at, err == nil, err
}

// seen returns the last head that both sides are known to have shared.
func (l *Link) seen(f heads.Facts) cas.Hash {
	if f.Remote == nil || f.Remote.Name != l.Name {
		return ""
	}
	return f.Remote.Head
}

// see records that both sides have the same head.
func (l *Link) see(ctx context.Context, thread string, head cas.Hash, facts heads.Facts) error {
	if l.seen(facts) == head {
		return nil
	}
	return l.Heads.SetFacts(ctx, thread, heads.Facts{Remote: l.now(head)})
}

func (l *Link) now(head cas.Hash) *heads.Remote {
	return &heads.Remote{Name: l.Name, Head: head, AtMs: l.Engine.Reader.Env.Now().UnixMilli()}
}

// shared returns the facts that a remote receives. Undone steps stay local, with their nodes. A push merges
// the redactions with the remote's ([Link.redacted]).
func shared(f heads.Facts) heads.Facts {
	f = remote.Shared(f)
	f.Undone, f.Redacted = nil, nil
	return f
}

// ended converts the end of a thread to a remote's format.
func ended(e *heads.Ended) *remote.Ended {
	if e == nil {
		return nil
	}
	return &remote.Ended{Workflow: e.Workflow, Status: e.Status, CompletedAt: e.CompletedAt}
}

// family returns local threads with all their descendants, children before parents.
func (l *Link) family(ctx context.Context, ids []string) ([]string, map[string]heads.Facts, error) {
	facts, err := l.Heads.AllFacts(ctx)
	if err != nil && facts == nil {
		return nil, nil, err
	}
	all := slices.Sorted(maps.Keys(heads.Family(facts, ids)))
	sorting.Stable(all, func(a, b string) int { return len(heads.Ancestors(facts, b)) - len(heads.Ancestors(facts, a)) })
	return all, facts, nil
}

// View returns an engine that shows threads in their state at the remote, and the leases on them. It reads
// only the nodes that it needs, and stores none.
func (l *Link) View(ctx context.Context, f remote.Filter) (*engine.Engine, map[string]remote.Lease, error) {
	return l.view(ctx, l.list(ctx, f))
}

// list yields the threads of the remote. It skips damaged entries with a warning.
func (l *Link) list(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	return func(yield func(remote.State, error) bool) {
		for s, err := range l.Remote.Threads(ctx, f) {
			if err == nil && s.Fault == "" {
				if wrong := checkState(s.Thread, s); wrong != nil {
					s.Fault = wrong.Error()
				} else if !threadid.Valid(s.Thread) {
					s.Fault = "not a thread id"
				}
			}
			if err == nil && s.Fault != "" {
				l.warn("skipped thread %s, which is damaged on %s: %s",
					cwd.Shown(s.Thread), l.Name, plaintext.Line(s.Fault))
				continue
			}
			if !yield(s, err) || err != nil {
				return
			}
		}
	}
}

// ViewOf is like [Link.View] for one thread and its children.
func (l *Link) ViewOf(ctx context.Context, thread string) (*engine.Engine, error) {
	if _, err := l.Remote.Thread(ctx, thread); err != nil {
		return nil, l.of(thread, err)
	}
	e, _, err := l.view(ctx, l.ofTime(ctx, thread))
	return e, err
}

// ofTime yields the threads whose IDs start with the same time as the thread's. They include the thread and
// its children.
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
	index, leases := &listed{states: map[string]heads.ThreadState{}, facts: map[string]heads.Facts{}}, map[string]remote.Lease{}
	var wanted []cas.Hash
	for s, err := range states {
		if err == nil && len(index.states) == remote.MaxThreads {
			err = &remote.LimitError{Most: remote.MaxThreads, Of: "threads"}
		}
		if err != nil {
			return nil, nil, l.of("", err)
		}
		p := pulling{Link: l, at: map[string]remote.State{s.Thread: s}}
		facts := p.taken(s.Thread)
		facts.Remote, facts.Parent = nil, s.Facts.Parent
		facts.Imported = &heads.Imported{From: "remote " + l.Name, Confirmed: true}
		at := heads.ThreadState{Head: s.Head}
		if e := s.Ended; e != nil {
			at.End = &heads.Ended{Thread: s.Thread, Workflow: e.Workflow, Head: s.Head, Status: e.Status,
				CompletedAt: e.CompletedAt}
		}
		index.states[s.Thread], index.facts[s.Thread] = at, facts
		wanted = append(wanted, s.Head)
		if s.Lease != nil {
			leases[s.Thread] = *s.Lease
		}
	}
	nodes := &reader{Store: l.Store, link: l, nodes: map[cas.Hash]cas.Node{}}
	if err := nodes.load(ctx, wanted); err != nil {
		return nil, nil, l.of("", err)
	}
	with := *l.Engine
	with.Reader.Store, with.Reader.Heads, with.Reader.ReadOnly = nodes, index, true
	return &with, leases, nil
}

// listed contains the threads of a remote.
type listed struct {
	changes // nil: the engine only reads
	states  map[string]heads.ThreadState
	facts   map[string]heads.Facts
}

type changes interface{ heads.Heads }

// Head implements [heads.Heads].
func (x *listed) Head(ctx context.Context, thread string) (cas.Hash, error) {
	at, known := x.states[thread]
	if !known || at.End != nil {
		return "", fmt.Errorf("%w: %s is not active", heads.ErrNoThread, thread)
	}
	return at.Head, ctx.Err()
}

// Heads implements [heads.Heads].
func (x *listed) Heads(context.Context) iter.Seq2[heads.Head, error] {
	return func(yield func(heads.Head, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(x.states)) {
			if at := x.states[id]; at.End == nil && !yield(heads.Head{Thread: id, Hash: at.Head}, nil) {
				return
			}
		}
	}
}

// Ended implements [heads.Heads].
func (x *listed) Ended(ctx context.Context, thread string) (heads.Ended, error) {
	end := x.states[thread].End
	if end == nil {
		return heads.Ended{}, fmt.Errorf("%w: %s has not ended", heads.ErrNoThread, thread)
	}
	return *end, ctx.Err()
}

// History implements [heads.Heads].
func (x *listed) History(context.Context) iter.Seq2[heads.Ended, error] {
	return func(yield func(heads.Ended, error) bool) {
		for _, id := range slices.Sorted(maps.Keys(x.states)) {
			if end := x.states[id].End; end != nil && !yield(*end, nil) {
				return
			}
		}
	}
}

// Facts implements [heads.Heads].
func (x *listed) Facts(ctx context.Context, thread string) (heads.Facts, error) {
	return x.facts[thread], ctx.Err()
}

// AllFacts implements [heads.Heads].
func (x *listed) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	return x.facts, ctx.Err()
}

// reader reads nodes from the home, else from the remote. It lists those of the home only.
type reader struct {
	cas.Store // the home's
	link      *Link

	mu    sync.Mutex
	nodes map[cas.Hash]cas.Node
	size  int
}

// maxRead is the maximum size in bytes of the remote's nodes kept in memory.
const maxRead = 64 << 20

// load reads heads and what is needed to show their steps, in few requests.
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

// read reads nodes that are neither local nor cached.
func (r *reader) read(ctx context.Context, wanted []cas.Hash) error {
	var lacking []cas.Hash
	asked := map[cas.Hash]bool{}
	for _, h := range wanted {
		here, err := r.Store.Has(ctx, h)
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
			continue // redacted; Get reports it
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
	n, err := r.Store.Get(ctx, h)
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
			return cas.Node{}, remote.Faultf("sent node %q, which was not requested", record.Hash)
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

// Put implements [cas.Store]. It always fails.
func (r *reader) Put(context.Context, ...cas.Node) error { return cas.ErrReadOnly }

// Commit implements [cas.Store]. It always fails.
func (r *reader) Commit(context.Context, ...cas.Node) error { return cas.ErrReadOnly }

// Like returns the IDs of the remote's threads that start or end with part, without children.
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

// maxLike is the maximum number of threads in a list of suggestions.
const maxLike = 20
