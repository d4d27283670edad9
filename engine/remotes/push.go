package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Pushed is what became of a thread.
type Pushed struct {
	Thread string   `json:"thread"`
	Head   cas.Hash `json:"head"`   // here
	Result string   `json:"result"` // as of an import, seen from the remote, or [Failed]
	// There is its head at the remote, if that is another one afterwards.
	There cas.Hash `json:"there,omitempty"`
	Nodes int      `json:"nodes"` // that were sent
	// Objects are those of files that were sent.
	Objects int    `json:"objects,omitempty"`
	Parent  string `json:"parent,omitempty"`
	// Whole are nodes that were redacted here, and are whole there.
	Whole []cas.Hash `json:"whole,omitempty"`
	// Error is why the remote does not have the thread as it is here; nil if it does.
	Error *protocol.StepError `json:"error,omitempty"`
}

// failed notes why a push has failed. Nothing counts that only a head would have made a part
// of the thread.
func (p *Pushed) failed(err error) {
	p.Error = fault.Step(fault.Of(err))
	if p.Result == "" {
		p.Result, p.Nodes, p.Objects = Failed, 0, 0
	}
}

// PushOptions say how threads are taken to a remote. The zero value works.
type PushOptions struct {
	// Check has the remote send back all that it has of the threads. Whatever does not come back
	// intact is sent again.
	Check bool
}

// Push takes threads to the remote, each with its children. A thread that has diverged, or
// that cannot be read, does not keep the others from being pushed: the error is that of the
// first one.
func (l *Link) Push(ctx context.Context, ids []string, o PushOptions) ([]Pushed, error) {
	done := []Pushed{}
	if o.Check {
		l = l.checking()
	}
	info, err := l.Remote.Info(ctx)
	if err != nil {
		return done, l.of("", err)
	}
	if info.Hash != l.Store.Algorithm() {
		return done, l.of("", &bundle.HashError{Bundle: info.Hash, Store: l.Store.Algorithm()})
	}
	release, err := cas.Hold(ctx, l.Store)
	if err != nil {
		return done, l.of("", err)
	}
	defer func() { _ = release() }()
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
			continue // removed by itself
		}
		if err == nil && !known {
			err = fmt.Errorf("%w: %s", heads.ErrNoThread, id)
		}
		if err == nil {
			err = l.push(ctx, at, facts[id], &p)
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

// tries bounds how often a push starts over because somebody else was faster.
const tries = 5

// push takes one thread to the remote. If the remote reports damage, push checks all of the
// thread.
func (l *Link) push(ctx context.Context, at heads.Standing, facts heads.Facts, p *Pushed) (err error) {
	p.Head = at.Head
	for range tries {
		var moved *remote.ConflictError
		switch err = l.pushOnce(ctx, at, facts, p, 0); {
		case errors.As(err, &moved):
		case isDamage(err) && !l.check:
			l = l.checking()
		default:
			return err
		}
	}
	return err
}

// pushOnce compares, sends and swaps, with the fence of a lease if there is one.
func (l *Link) pushOnce(ctx context.Context, at heads.Standing, facts heads.Facts, p *Pushed, fence int64) error {
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
	said, err := l.announced(ctx, p.Thread, at.Head, facts, at.End == nil)
	if err == nil {
		err = l.recall(ctx, p.Thread, facts, said)
	}
	if err != nil {
		return err
	}
	if said.Redacted, err = l.redacted(ctx, at.Head, facts, there); err != nil {
		return err
	}
	switch result {
	case bundle.Unchanged: // a push before may not have taken its files
		if l.check {
			if p.Nodes, p.Whole, err = l.send(ctx, []cas.Hash{at.Head}); err != nil {
				return err
			}
		}
		if p.Objects, err = l.sendFiles(ctx, at.Head, there.Head, said); err != nil {
			return err
		}
		if len(begun(said)) > len(begun(there.Facts)) || said.Redacted != nil {
			swap := remote.Swap{
				Thread: p.Thread, Was: at.Head, Head: at.Head, WasEnded: there.Ended != nil, Ended: there.Ended,
				Facts: heads.Facts{Repository: said.Repository, Redacted: said.Redacted}, Fence: fence,
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
		Head: at.Head, Ended: ended(at.End), Facts: said, Fence: fence,
	}
	roots := []cas.Hash{at.Head}
	if e := swap.Ended; e != nil {
		if !e.Workflow.Valid() { // of a thread whose nodes could not be read
			return protocolError(protocol.CodeCorrupt, "thread %s has ended, and nobody knows with which workflow: it cannot be pushed", p.Thread)
		}
		roots = append(roots, e.Workflow)
	}
	if p.Nodes, p.Whole, err = l.send(ctx, roots, l.both(ctx, there.Head)...); err != nil {
		return err
	}
	if p.Objects, err = l.sendFiles(ctx, at.Head, there.Head, said); err != nil {
		return err
	}
	if err := l.Remote.Swap(ctx, swap); err != nil {
		return err
	}
	p.Result = result
	return l.see(ctx, p.Thread, at.Head, facts)
}

// redacted is all that was redacted of a thread's files, here and at the remote; nil: the remote
// knows it.
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
	here, err := l.Engine.Files().Sources().Redaction(ctx, roots)
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

// notPushed says why a thread stays as it is at the remote.
func (l *Link) notPushed(p *Pushed, there remote.State) error {
	p.There = there.Head
	switch p.Result {
	case Diverged:
		return l.divergedError(p.Thread, p.Head, there.Head)
	case bundle.Stays:
		return &protocol.Error{
			Code:    protocol.CodeFailed,
			Message: fmt.Sprintf("thread %s was ended at %s, as %s at %s: it takes no more steps there", p.Thread, l.Name, there.Ended.Status, there.Head),
			Hints:   []string{fmt.Sprintf("uwf thread fork %s keeps what was done here as a thread of its own", p.Head)},
		}
	}
	return nil // behind is no error: there is nothing to push
}

// compare says how a thread here relates to the one at the remote.
func (l *Link) compare(ctx context.Context, at heads.Standing, facts heads.Facts, there remote.State) (string, error) {
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
	follows, err := bundle.LeadsTo(ctx, l.Store, at.Head, there.Head)
	if err != nil {
		return "", err
	}
	switch {
	case follows && there.Ended != nil && there.Ended.Status != protocol.StatusCompleted:
		return bundle.Stays, nil
	case follows:
		return bundle.Advanced, nil
	case seen == there.Head:
		return bundle.Replaced, nil
	case seen == at.Head:
		return Behind, nil
	}
	// Only a node that is here as well can tell that the remote's chain goes through ours.
	behind, err := bundle.LeadsTo(ctx, l.Store, there.Head, at.Head)
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

// both returns those of the nodes that are here, too, with all that they lead to.
func (l *Link) both(ctx context.Context, hashes ...cas.Hash) []cas.Hash {
	return slices.DeleteFunc(hashes, func(h cas.Hash) bool {
		if h == "" {
			return true
		}
		here, err := l.Store.Has(ctx, h)
		return err != nil || !here
	})
}

// send sends what the remote lacks of everything that the roots lead to, except what is only
// reachable through nodes that it has. whole are those that are redacted here and not there.
func (l *Link) send(ctx context.Context, roots []cas.Hash, there ...cas.Hash) (sent int, whole []cas.Hash, err error) {
	known := func(h cas.Hash) (bool, error) { return slices.Contains(there, h) && !l.check, nil }
	var all []cas.Hash
	near := map[cas.Hash]cas.Node{} // some of them, that need not be read again
	room := keptToSend
	buried := map[cas.Hash]bool{}
	err = cas.BottomUp(ctx, l.Store, roots, cas.BottomUpOptions{Known: known}, func(v cas.Visited) error {
		all = append(all, v.Node.Hash)
		if v.Tombstone != nil {
			buried[v.Node.Hash] = true
		} else if size := len(v.Node.Payload); size <= room {
			near[v.Node.Hash], room = v.Node, room-size
		}
		return nil
	})
	if err != nil {
		return 0, nil, err
	}
	lacking, err := remote.MissingFrom(ctx, l.Remote, all)
	if err != nil {
		return 0, nil, err
	}
	if l.check {
		bad, err := notReturned(without(all, lacking), func(rest []cas.Hash) iter.Seq2[remote.Record, error] { return l.Remote.Get(ctx, rest) })
		if err != nil {
			return 0, nil, err
		}
		lacking = append(lacking, bad...)
	}
	for h := range buried { // also where something is: whether it is whole there is to be said
		if !slices.Contains(lacking, h) {
			lacking = append(lacking, h)
		}
	}
	different, err := remote.PutAll(ctx, l.Remote, l.records(ctx, lacking, near))
	for _, h := range different {
		if buried[h] {
			whole = append(whole, h)
		}
	}
	return len(lacking), whole, err
}

// keptToSend bounds the nodes that are kept from the look at a thread until they are sent,
// in bytes.
const keptToSend = 32 << 20

// records are nodes as they travel; near are some of them.
func (l *Link) records(ctx context.Context, hashes []cas.Hash, near map[cas.Hash]cas.Node) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		for _, h := range hashes {
			n, known := near[h]
			var err error
			if !known {
				n, err = l.Store.Get(ctx, h)
			}
			r := remote.Record{Hash: h}
			if redacted, ok := cas.AsRedacted(err); ok {
				t := redacted.Tombstone
				t.Foreign = false // which is about this store
				r.File, err = cas.MarshalTombstone(t)
			} else if err == nil {
				r.File = cas.MarshalFile(n)
			}
			if !yield(r, err) || err != nil {
				return
			}
		}
	}
}

// checking is a link that has the remote send back what it says it has.
func (l *Link) checking() *Link {
	with := *l
	with.check = true
	return &with
}

// isDamage reports whether an error is of something that is damaged at the remote, or gone.
func isDamage(err error) bool {
	var corrupt *cas.CorruptError
	var missing *remote.MissingError
	return errors.As(err, &corrupt) || errors.As(err, &missing) || errors.Is(err, &protocol.Error{Code: protocol.CodeCorrupt})
}

// notReturned asks for everything in a list, and reports what does not come back intact.
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

// without are those of a list that are not in another one.
func without[K ~string](all, some []K) []K {
	not := make(map[K]bool, len(some))
	for _, k := range some {
		not[k] = true
	}
	return slices.DeleteFunc(slices.Clone(all), func(k K) bool { return not[k] })
}

func protocolError(code protocol.Code, format string, args ...any) error {
	return &protocol.Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
