package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/step/snapshot"
)

// Pushed is the result of a push for one thread.
type Pushed struct {
	Thread string   `json:"thread"`
	Head   cas.Hash `json:"head"`   // local head
	Result string   `json:"result"` // like the result of an import, from the remote's view, or [Failed]
	// There is the remote's head after the push, if it differs from Head.
	There cas.Hash `json:"there,omitempty"`
	Nodes int      `json:"nodes"` // number of nodes sent
	// Objects is the number of file objects sent.
	Objects int    `json:"objects,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Whole lists nodes that were redacted here but are intact at the remote.
	Whole []cas.Hash `json:"whole,omitempty"`
	// Error explains why the remote doesn't have the thread's current state; nil if it does.
	Error *protocol.StepError `json:"error,omitempty"`

	redacted *heads.Redacted // files redacted at the remote
}

// failed records why a push failed. It resets the counts, because without a head the sent nodes aren't part
// of the thread.
func (p *Pushed) failed(err error) {
	p.Error = fault.Step(fault.Of(err))
	if p.Result == "" {
		p.Result, p.Nodes, p.Objects = Failed, 0, 0
	}
}

// PushOptions are the options of [Link.Push]. The zero value is valid.
type PushOptions struct {
	// Check makes the remote send back all its data of the threads. Whatever is damaged or missing is sent
	// again.
	Check bool
}

// Push pushes threads with their children to the remote. A diverged or unreadable thread doesn't stop the
// others; Push returns the first error.
func (l *Link) Push(ctx context.Context, ids []string, o PushOptions) ([]Pushed, error) {
	info, err := l.Remote.Info(ctx)
	if err == nil && info.Hash != l.Store.Algorithm() {
		err = &bundle.HashError{Bundle: info.Hash, Store: l.Store.Algorithm()}
	}
	if err == nil {
		err = l.heed(ctx)
	}
	if err != nil {
		return []Pushed{}, l.of("", err)
	}
	redacted := map[string]*heads.Redacted{}
	done, err := l.pushAll(ctx, ids, o, redacted)
	for _, id := range slices.Sorted(maps.Keys(redacted)) {
		if failed := l.heedFiles(ctx, id, redacted[id]); err == nil {
			err = l.of(id, failed)
		}
	}
	return done, err
}

// pushAll pushes threads with their children. redacted gets the redactions of their files at the remote.
func (l *Link) pushAll(ctx context.Context, ids []string, o PushOptions, redacted map[string]*heads.Redacted) ([]Pushed, error) {
	done := []Pushed{}
	if o.Check {
		l = l.checking()
	}
	family, facts, err := l.family(ctx, ids)
	if err != nil {
		return done, l.of("", err)
	}
	var first error
	for _, id := range family {
		p := Pushed{Thread: id}
		if parent := facts[id].Parent; parent != nil {
			p.Parent = parent.Thread
		}
		at, known, err := l.standing(ctx, id)
		if err == nil && !known && !slices.Contains(ids, id) {
			continue // it was removed separately
		}
		if err == nil && !known {
			err = fmt.Errorf("%w: %s", heads.ErrNoThread, id)
		}
		if err == nil {
			err = l.push(ctx, at, facts[id], &p)
			redacted[id] = p.redacted
		}
		if err = l.of(id, err); err != nil {
			p.failed(err)
			first = cmp.Or(first, err)
		}
		if ctx.Err() != nil {
			return done, first
		}
		done = append(done, p)
	}
	return done, first
}

// tries limits how often a push starts over after another client was faster.
const tries = 5

// push pushes one thread. If the remote reports damage, it checks the whole thread. If a node is missing here because
// the thread has moved and the collector has removed what it left, it pushes the thread's new state.
func (l *Link) push(ctx context.Context, at heads.ThreadState, facts heads.Facts, p *Pushed) (err error) {
	p.Head = at.Head
	for range tries {
		var moved *remote.ConflictError
		switch err = l.pushOnce(ctx, at, facts, p, 0); {
		case errors.As(err, &moved):
		case isDamage(err) && !l.check:
			l = l.checking()
		case errors.Is(err, cas.ErrNotFound):
			now, known, failed := l.standing(ctx, p.Thread)
			if failed != nil || !known || now.Head == at.Head {
				return err
			}
			at, p.Head = now, now.Head
		default:
			return err
		}
	}
	return err
}

// pushOnce compares, sends and swaps once. fence is the fencing token of the lease, if there is one.
func (l *Link) pushOnce(ctx context.Context, at heads.ThreadState, facts heads.Facts, p *Pushed, fence int64) error {
	there, err := l.Remote.Thread(ctx, p.Thread)
	result := bundle.Added
	switch {
	case errors.Is(err, heads.ErrNoThread):
	case err != nil:
		return err
	default:
		if result, err = l.compare(ctx, at, facts, there); err != nil {
			return err
		}
	}
	p.redacted = there.Facts.Redacted
	outgoing, err := l.announced(ctx, p.Thread, at.Head, facts, at.End == nil)
	if err == nil {
		err = l.recall(ctx, p.Thread, facts, outgoing)
	}
	if err != nil {
		return err
	}
	if outgoing.Redacted, err = l.redacted(ctx, at.Head, facts, there); err != nil {
		return err
	}
	switch result {
	case bundle.Unchanged: // an earlier push may have failed to send its files
		if l.check {
			if p.Nodes, p.Whole, err = l.send(ctx, []cas.Hash{at.Head}); err != nil {
				return err
			}
		}
		if p.Objects, err = l.sendFiles(ctx, at.Head, there.Head, outgoing); err != nil {
			return err
		}
		if len(unfinished(outgoing)) > len(unfinished(there.Facts)) || outgoing.Redacted != nil {
			swap := remote.Swap{
				Thread: p.Thread, Was: at.Head, Head: at.Head, WasEnded: there.Ended != nil, Ended: there.Ended,
				Facts: heads.Facts{Repository: outgoing.Repository, Redacted: outgoing.Redacted}, Fence: fence,
			}
			if err := l.Remote.Swap(ctx, swap); err != nil {
				return err
			}
		}
		p.Result = result
		return l.see(ctx, p.Thread, at.Head, facts)
	case Behind, Diverged, bundle.Stays:
		p.Result = result
		return l.notPushed(p, there)
	}
	swap := remote.Swap{
		Thread: p.Thread, Was: there.Head, WasEnded: there.Ended != nil,
		Head: at.Head, Ended: ended(at.End), Facts: outgoing, Fence: fence,
	}
	roots := []cas.Hash{at.Head}
	if e := swap.Ended; e != nil {
		if !e.Workflow.Valid() { // the thread's nodes were unreadable
			return fault.New(protocol.CodeCorrupt, "cannot push thread %s: it has ended, and its workflow is "+
				"unknown", p.Thread)
		}
		roots = append(roots, e.Workflow)
	}
	if p.Nodes, p.Whole, err = l.send(ctx, roots, l.both(ctx, there.Head)...); err != nil {
		return err
	}
	if p.Objects, err = l.sendFiles(ctx, at.Head, there.Head, outgoing); err != nil {
		return err
	}
	if err := l.Remote.Swap(ctx, swap); err != nil {
		return err
	}
	p.Result = result
	return l.see(ctx, p.Thread, at.Head, facts)
}

// redacted returns all redactions of a thread's files, from here and from the remote, or nil if the remote
// has them all.
func (l *Link) redacted(
	ctx context.Context, head cas.Hash, facts heads.Facts, there remote.State,
) (*heads.Redacted, error) {
	roots := func() (map[protocol.Tree]string, error) {
		states, err := statesOf(ctx, l.Store, head, "")
		roots := map[protocol.Tree]string{}
		for _, s := range states {
			roots[s.tree] = s.root
		}
		return roots, err
	}
	here, err := l.Engine.Files().Finder().Redaction(ctx, roots)
	if err != nil {
		return nil, err
	}
	known := sensibleRedacted(there.Facts.Redacted)
	all := known.And(here).And(facts.Redacted)
	if reflect.DeepEqual(all, known) {
		return nil, nil
	}
	return all, nil
}

// notPushed returns the error for a thread that the push left unchanged.
func (l *Link) notPushed(p *Pushed, there remote.State) error {
	p.There = there.Head
	switch p.Result {
	case Diverged:
		return l.divergedError(p.Thread, p.Head, there.Head)
	case bundle.Stays:
		return fault.New(protocol.CodeFailed, "thread %s was ended on %s as %s at %s", p.Thread,
			l.Name, there.Ended.Status, there.Head).Because("ended-there", "head", string(p.Head))
	}
	return nil // a thread that is behind has nothing to push
}

// compare compares a local thread with the one at the remote.
func (l *Link) compare(ctx context.Context, at heads.ThreadState, facts heads.Facts, there remote.State) (string, error) {
	seen := l.seen(facts)
	if at.Head == there.Head {
		switch {
		case at.End != nil && there.Ended == nil:
			return bundle.Advanced, nil
		case at.End == nil && there.Ended != nil:
			return Behind, nil
		}
		return bundle.Unchanged, nil
	}
	follows, err := bundle.HasAncestor(ctx, l.Store, at.Head, there.Head)
	if err != nil {
		return "", err
	}
	switch {
	case follows && there.Ended != nil && !there.Ended.Status.AtEnd():
		return bundle.Stays, nil
	case follows:
		return bundle.Advanced, nil
	case seen == there.Head:
		return bundle.Replaced, nil
	case seen == at.Head:
		return Behind, nil
	}
	// Whether the remote's chain contains our head can only be determined from local nodes.
	behind, err := bundle.HasAncestor(ctx, l.Store, there.Head, at.Head)
	switch {
	case err != nil || behind:
		return Behind, err
	}
	known, err := l.Store.Has(ctx, there.Head)
	if err != nil || known {
		return Diverged, err
	}
	for h, err := range l.Remote.Walk(ctx, []cas.Hash{there.Head}, nil) {
		if err != nil {
			return "", err
		}
		behind = behind || h == at.Head
	}
	if behind {
		return Behind, nil
	}
	return Diverged, nil
}

// both returns the nodes that also exist here.
func (l *Link) both(ctx context.Context, hashes ...cas.Hash) []cas.Hash {
	return slices.DeleteFunc(hashes, func(h cas.Hash) bool {
		if h == "" {
			return true
		}
		here, err := l.Store.Has(ctx, h)
		return err != nil || !here
	})
}

// send sends the nodes reachable from roots that the remote lacks, except those only reachable through nodes
// that it has. whole are nodes that are redacted here but not there.
func (l *Link) send(ctx context.Context, roots []cas.Hash, there ...cas.Hash) (sent int, whole []cas.Hash, err error) {
	s := &nodes{Link: l, buried: map[cas.Hash]bool{}}
	known := func(h cas.Hash) (bool, error) { return slices.Contains(there, h) && !l.check, nil }
	err = graph.BottomUp(ctx, l.Store, roots, graph.BottomUpOptions{Known: known}, func(v graph.Visited) error {
		return s.add(ctx, v)
	})
	if err == nil {
		err = s.flush(ctx)
	}
	return s.sent, s.whole, err
}

// nodes sends nodes in portions, each after those that it needs.
type nodes struct {
	*Link
	records []remote.Record // the current portion
	size    int
	buried  map[cas.Hash]bool // tombstones in it
	// fresh means that the remote had nothing of a portion. Then it has hardly anything of the following ones, so
	// they are sent without asking.
	fresh bool
	sent  int
	whole []cas.Hash
}

// portion is the size in bytes of the nodes that are kept in memory until they are sent.
const portion = 1 << 20

func (s *nodes) add(ctx context.Context, v graph.Visited) (err error) {
	r := remote.Record{Hash: v.Node.Hash}
	if v.Tombstone != nil {
		t := *v.Tombstone
		t.Foreign = false // only meaningful in this store
		s.buried[r.Hash] = true
		if r.File, err = cas.MarshalTombstone(t); err != nil {
			return err
		}
	} else {
		r.File = cas.MarshalFile(v.Node)
	}
	if len(s.records) == remote.MaxHashes || len(s.records) > 0 && s.size+len(r.File) > portion {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.records, s.size = append(s.records, r), s.size+len(r.File)
	return nil
}

// flush sends what the remote lacks of the current portion.
func (s *nodes) flush(ctx context.Context) error {
	if len(s.records) == 0 {
		return nil
	}
	wanted, err := s.wanted(ctx)
	if err != nil {
		return err
	}
	different, err := remote.PutAll(ctx, s.Remote, func(yield func(remote.Record, error) bool) {
		for _, r := range s.records {
			if !s.fresh && !wanted[r.Hash] && !s.buried[r.Hash] { // the remote may have the intact node of a tombstone
				continue
			}
			if s.sent++; !yield(r, nil) {
				return
			}
		}
	})
	for _, h := range different {
		if s.buried[h] {
			s.whole = append(s.whole, h)
		}
	}
	clear(s.records) // frees their content
	s.records, s.size = s.records[:0], 0
	clear(s.buried)
	return err
}

// wanted returns the nodes of the current portion that the remote lacks, and sets fresh.
func (s *nodes) wanted(ctx context.Context) (map[cas.Hash]bool, error) {
	if s.fresh {
		return nil, nil
	}
	all := make([]cas.Hash, len(s.records))
	for i, r := range s.records {
		all[i] = r.Hash
	}
	lacking, err := s.Remote.Missing(ctx, all)
	if err == nil && s.check {
		var bad []cas.Hash
		bad, err = notReturned(without(all, lacking), func(rest []cas.Hash) iter.Seq2[remote.Record, error] {
			return s.Remote.Get(ctx, rest)
		})
		lacking = append(lacking, bad...)
	}
	if err != nil {
		return nil, err
	}
	wanted := make(map[cas.Hash]bool, len(lacking))
	for _, h := range lacking {
		wanted[h] = true
	}
	s.fresh = len(lacking) == len(all) && !s.check
	return wanted, nil
}

// checking returns a link that verifies what the remote claims to have.
func (l *Link) checking() *Link {
	with := *l
	with.check = true
	return &with
}

// isDamage reports whether err means that data at the remote is damaged or missing.
func isDamage(err error) bool {
	var corrupt *cas.CorruptError
	var missing *remote.MissingError
	return errors.As(err, &corrupt) || errors.As(err, &missing) || errors.Is(err,
		&protocol.Error{Code: protocol.CodeCorrupt})
}

// notReturned requests all items of a list, and returns those that are missing or damaged.
func notReturned[K ~string, V any](all []K, get func(rest []K) iter.Seq2[V, error]) (bad []K, err error) {
	for len(all) > 0 {
		part := all[:min(len(all), remote.MaxHashes)]
		n := 0
		for _, err = range get(part) {
			if err != nil {
				break
			}
			n++
		}
		if n < len(part) {
			if !isDamage(err) {
				return nil, err
			}
			bad, n = append(bad, part[n]), n+1
		}
		all = all[n:]
	}
	return bad, nil
}

// without returns the items of all that are not in some.
func without[K ~string](all, some []K) []K {
	not := make(map[K]bool, len(some))
	for _, k := range some {
		not[k] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(k K) bool { return not[k] })
}

type index = fileheads.Heads

// published are heads that move at a remote first: it sends the nodes, moves the remote's head by
// compare-and-swap with the fencing token, and then moves the local head. If it is killed in between, the
// home is behind, and the next pull updates it.
//
// A finished step is never discarded. If the remote rejects it or is unreachable, the local head moves
// anyway, and a [*heads.UnpublishedError] reports it. After that, nothing more is sent to the remote.
type published struct {
	*index
	link  *Link
	lease *lease // lease of the thread being worked on

	mu     sync.Mutex
	at     map[string]remote.State // states of the threads at the remote
	broken error
}

// state returns the state of a thread at the remote, or nil if the remote doesn't have it.
func (p *published) state(ctx context.Context, thread string) (*remote.State, error) {
	p.mu.Lock()
	s, known := p.at[thread]
	p.mu.Unlock()
	if known {
		return &s, nil
	}
	s, err := p.link.Remote.Thread(ctx, thread)
	if errors.Is(err, heads.ErrNoThread) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return &s, checkState(thread, s)
}

// publish sends the nodes for a change of a thread, and makes the change at the remote.
func (p *published) publish(ctx context.Context, thread string, head cas.Hash, end *heads.Ended,
	change heads.Facts) error {
	if p.broken != nil {
		return nil // already reported
	}
	was, err := p.state(ctx, thread)
	if err != nil {
		return err
	}
	swap := remote.Swap{Thread: thread, Head: head, Ended: ended(end), Facts: change}
	if was != nil {
		swap.Was, swap.WasEnded = was.Head, was.Ended != nil
	}
	if swap.Was != head {
		if _, _, err := p.link.send(ctx, []cas.Hash{head}, p.link.both(ctx, swap.Was)...); err != nil {
			return err
		}
		if _, err := p.link.sendFiles(ctx, head, swap.Was, change); err != nil {
			return err
		}
	}
	if err := p.swap(ctx, swap); err != nil {
		return err
	}
	p.mu.Lock()
	p.at[thread] = remote.State{Thread: thread, Head: head, Ended: swap.Ended}
	p.mu.Unlock()
	return nil
}

// swap swaps with the lease's fencing token. If the lease has expired and is free, it takes the lease again
// and checks whether another client was faster.
func (p *published) swap(ctx context.Context, s remote.Swap) error {
	mine := p.lease != nil && p.lease.thread == s.Thread
	if mine {
		s.Fence = p.lease.current()
	}
	err := p.link.Remote.Swap(ctx, s)
	var fence *remote.FenceError
	if mine && errors.As(err, &fence) && p.lease.again(ctx) == nil {
		s.Fence = p.lease.current()
		err = p.link.Remote.Swap(ctx, s)
	}
	if err == nil {
		return nil
	}
	// Our swap may have succeeded although its response was lost.
	if at, lookErr := p.link.Remote.Thread(ctx, s.Thread); lookErr == nil && at.Head == s.Head && s.Was != s.Head &&
		(at.Ended != nil) == (s.Ended != nil) {
		return nil
	}
	return err
}

// refused handles an error of publish after the local head has moved.
func (p *published) refused(ctx context.Context, thread string, head cas.Hash, err error) error {
	if err == nil || p.broken != nil {
		return nil
	}
	p.broken = p.link.unpublished(context.WithoutCancel(ctx), thread, head, err)
	return &heads.UnpublishedError{Err: p.broken}
}

// unpublished returns the error for a change that could not be published.
func (l *Link) unpublished(ctx context.Context, thread string, head cas.Hash, why error) error {
	there, err := l.Remote.Thread(ctx, thread)
	if err == nil {
		facts, _ := l.Heads.Facts(ctx, thread)
		if result, err := l.compare(ctx, heads.ThreadState{Head: head}, facts, there); err == nil && result == Diverged {
			return l.divergedError(thread, head, there.Head)
		}
	}
	var coded *protocol.Error
	if why = l.of(thread, why); !errors.As(why, &coded) {
		return why
	}
	alone := protocol.Why("step-here-alone", "thread", thread, "at", l.Name)
	return &protocol.Error{
		Code:    coded.Code,
		Message: "step " + string(head) + " was made but not pushed: " + coded.Message,
		Hints:   coded.Hints, Reasons: append([]protocol.Reason{alone}, coded.Reasons...), Err: why,
	}
}

// Move implements [heads.Heads].
func (p *published) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	facts, err := p.index.Facts(ctx, thread)
	if err != nil {
		return err
	}
	outgoing, published := p.link.announced(ctx, thread, new, facts, false)
	if published == nil {
		published = p.publish(ctx, thread, new, nil, outgoing)
	}
	if err := p.index.Move(ctx, thread, old, new); err != nil {
		return err
	}
	if err := p.link.recall(ctx, thread, facts, outgoing); err != nil {
		return err
	}
	return p.arrived(ctx, thread, new, published)
}

// arrived records that both sides have the same head, or returns why they don't.
func (p *published) arrived(ctx context.Context, thread string, head protocol.Hash, published error) error {
	if published == nil && p.broken == nil {
		return p.index.SetFacts(ctx, thread, heads.Facts{Remote: p.link.now(head)})
	}
	return p.refused(ctx, thread, head, published)
}

// Archive implements [heads.Heads].
func (p *published) Archive(ctx context.Context, e heads.Ended) error {
	var published error
	if e.Workflow.Valid() {
		published = p.publish(ctx, e.Thread, e.Head, &e, heads.Facts{})
	}
	if err := p.index.Archive(ctx, e); err != nil {
		return err
	}
	return p.refused(ctx, e.Thread, e.Head, published)
}

// AddAll implements [heads.Heads]. It omits threads that the remote rejects; a repeated call adds them.
func (p *published) AddAll(ctx context.Context, threads []heads.New) error {
	for i, n := range threads {
		if p.broken != nil {
			return p.broken
		}
		outgoing, err := p.link.announced(ctx, n.Thread, n.Hash, n.Facts, false)
		if err == nil {
			err = p.publish(ctx, n.Thread, n.Hash, nil, outgoing)
		}
		if err != nil {
			return p.link.of(n.Thread, err)
		}
		if len(unfinished(outgoing)) > 0 {
			threads[i].Facts.Repository = outgoing.Repository
		}
	}
	for i, n := range threads {
		threads[i].Facts.Remote = p.link.now(n.Hash)
	}
	return p.index.AddAll(ctx, threads)
}

// SetFacts implements [heads.Heads].
func (p *published) SetFacts(ctx context.Context, thread string, change heads.Facts) error {
	if err := p.index.SetFacts(ctx, thread, change); err != nil {
		return err
	}
	if change = shared(change); reflect.ValueOf(change).IsZero() || p.broken != nil {
		return nil
	}
	was, err := p.state(ctx, thread)
	if err != nil || was == nil {
		return p.link.of(thread, err)
	}
	var end *heads.Ended
	if was.Ended != nil {
		end = &heads.Ended{Workflow: was.Ended.Workflow, Status: was.Ended.Status, CompletedAt: was.Ended.CompletedAt}
	}
	return p.link.of(thread, p.publish(ctx, thread, was.Head, end, change))
}

// announced returns the facts that a remote receives about a thread at a head. To continue the thread on a
// machine without a clone of its repository, its initial files are needed. If no step contains them,
// announced reads the current files, but only if look is set.
func (l *Link) announced(ctx context.Context, id string, head cas.Hash, f heads.Facts, look bool) (heads.Facts, error) {
	w := f.Workspace
	if f.Repository != nil || w == nil || w.Base == "" {
		return shared(f), nil
	}
	r := &heads.Repository{Base: w.Base}
	if f.Parent != nil { // if the parent's files came from a remote, there is no clone either
		above, err := l.Heads.Facts(ctx, f.Parent.Thread)
		if err != nil {
			return f, err
		}
		if above.Repository != nil {
			r.Base = above.Repository.Base
		}
	}
	states, err := statesOf(ctx, l.Store, head, "")
	if err != nil {
		return f, err
	}
	r.Dir = l.below(ctx, id, w)
	switch n := len(states); {
	case n > 0:
		r.Tree = states[n-1].tree
	case look:
		k, err := l.Engine.Files().Open(ctx, id, w.Root, w)
		if err != nil && ctx.Err() != nil {
			return f, err
		}
		if err != nil {
			l.warn("the files of thread %s were not pushed to %s: %v", id, l.Name, err)
			break
		}
		r.Tree = k.Spec.Tree
		k.Release()
	}
	f.Repository = r
	return shared(f), nil
}

// recall saves the repository facts determined for a remote, so that all remotes receive the same.
func (l *Link) recall(ctx context.Context, id string, known, outgoing heads.Facts) error {
	if known.Repository != nil || len(unfinished(outgoing)) == 0 {
		return nil
	}
	return l.Heads.SetFacts(ctx, id, heads.Facts{Repository: outgoing.Repository})
}

// below returns the thread's directory relative to the root of its work tree, with slashes.
func (l *Link) below(ctx context.Context, id string, w *heads.Workspace) string {
	root := l.Engine.Reader.Dirs.Worktree(id)
	if w.Mode == worktree.InPlace {
		repo, err := snapshot.Find(ctx, l.Engine.Reader.Env, w.Root)
		if err != nil {
			return ""
		}
		root = repo.Root
	} else if real, err := cwd.Real(filepath.Dir(root)); err == nil {
		root = filepath.Join(real, id)
	}
	if rel, ok := cwd.Below(root, w.Root); ok && rel != "." {
		return filepath.ToSlash(rel)
	}
	return ""
}

// unfinished returns the initial files of a thread in the facts for a remote.
func unfinished(f heads.Facts) []state {
	if f.Repository == nil || !f.Repository.Tree.Valid() {
		return nil
	}
	return []state{{tree: f.Repository.Tree}}
}

// sensibleRepository removes invalid claims about a repository.
func sensibleRepository(r *heads.Repository) *heads.Repository {
	const longest = 4096
	if r == nil || !protocol.Tree("sha1:"+r.Base).Valid() && !protocol.Tree("sha256:"+r.Base).Valid() {
		return nil
	}
	is := *r
	if !is.Tree.Valid() {
		is.Tree = ""
	}
	if !filepath.IsLocal(filepath.FromSlash(is.Dir)) || len(is.Dir) > longest {
		is.Dir = ""
	}
	return &is
}
