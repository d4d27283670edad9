package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/threadid"
)

// maxPull is the maximum size of a pull in bytes.
const maxPull = 64 << 30

// PullOptions are the options of a pull. The zero value is valid.
type PullOptions struct {
	// Discard discards the local work on a diverged thread.
	Discard bool
	// Links also accepts files with a symbolic link out of the work tree.
	Links bool
}

// Pulled is the result of a pull.
type Pulled struct {
	Threads    []bundle.ImportedThread `json:"threads"`
	Nodes      int                     `json:"nodes"`             // number of nodes that were missing here
	Objects    int                     `json:"objects,omitempty"` // number of file objects that were missing here
	Redactions []cas.Hash              `json:"redactions,omitempty"`

	at map[string]remote.State // states of the threads at the remote
}

// Pull fetches threads with their children and ancestors. It writes nothing unless all of them are complete.
func (l *Link) Pull(ctx context.Context, ids []string, o PullOptions) (Pulled, error) {
	p := &pulling{Link: l, options: o, at: map[string]remote.State{}}
	if err := l.heed(ctx); err != nil {
		return Pulled{Threads: []bundle.ImportedThread{}}, l.of("", err)
	}
	done, err := p.pull(ctx, ids)
	for _, id := range slices.Sorted(maps.Keys(p.at)) {
		if err == nil {
			err = l.heedFiles(ctx, id, p.at[id].Facts.Redacted)
		}
	}
	return done, l.of(p.about, err)
}

// pulling is a pull in progress.
type pulling struct {
	*Link
	options PullOptions
	at      map[string]remote.State
	about   string // the thread currently requested
	here    map[string]heads.ThreadState
	facts   map[string]heads.Facts
	size    int64 // bytes received
}

func (p *pulling) pull(ctx context.Context, ids []string) (Pulled, error) {
	none := Pulled{Threads: []bundle.ImportedThread{}}
	info, err := p.Remote.Info(ctx)
	if err != nil {
		return none, err
	}
	if info.Hash != p.Store.Algorithm() {
		return none, &bundle.HashError{Bundle: info.Hash, Store: p.Store.Algorithm()}
	}
	if err := p.Store.Make(ctx, p.Engine.Reader.Env.Now().UnixMilli()); err != nil {
		return none, err
	}
	for _, id := range ids {
		if err := p.ask(ctx, id); err != nil {
			return none, err
		}
	}
	done, err := p.importThreads(ctx)
	if err != nil {
		return done, err
	}
	before := len(p.at)
	for _, id := range ids {
		if err := p.askFamily(ctx, id); err != nil {
			return done, err
		}
	}
	if len(p.at) == before {
		return done, nil
	}
	all, err := p.importThreads(ctx)
	if err != nil {
		return done, err
	}
	all.Nodes, all.Objects = all.Nodes+done.Nodes, all.Objects+done.Objects
	all.Redactions = append(done.Redactions, all.Redactions...)
	for i, t := range all.Threads { // report what the first import did, not "unchanged"
		if at := slices.IndexFunc(done.Threads, func(d bundle.ImportedThread) bool { return d.Thread == t.Thread }); at >= 0 {
			all.Threads[i] = done.Threads[at]
		}
	}
	return all, nil
}

// ask requests the states of a thread and its ancestors.
func (p *pulling) ask(ctx context.Context, id string) error {
	const generations = 100
	for range generations {
		if _, known := p.at[id]; known {
			return nil
		}
		p.about = id
		state, err := p.Remote.Thread(ctx, id)
		if err != nil {
			return err
		}
		if err := checkState(id, state); err != nil {
			return err
		}
		p.at[id] = state
		if state.Facts.Parent == nil {
			return nil
		}
		id = state.Facts.Parent.Thread
	}
	return remote.Faultf("thread %s is nested in too many parents", id)
}

// askFamily requests the children of a thread that may have some. Their IDs start with the same time as their
// parent's.
func (p *pulling) askFamily(ctx context.Context, id string) error {
	if has, err := p.hasChildren(ctx, id); err != nil || !has {
		return err
	}
	states, facts := map[string]remote.State{}, map[string]heads.Facts{}
	for state, err := range p.ofTime(ctx, id) {
		if err != nil {
			return err
		}
		if len(states) == remote.MaxThreads {
			return remote.Faultf("listed more than %d threads", remote.MaxThreads)
		}
		states[state.Thread], facts[state.Thread] = state, state.Facts
	}
	for child := range heads.Family(facts, []string{id}) {
		if state, known := states[child]; known && child != id {
			if err := checkState(child, state); err != nil {
				return err
			}
			p.at[child] = state
		}
	}
	return nil
}

// hasChildren reports whether other threads play a role of a thread's workflow.
func (l *Link) hasChildren(ctx context.Context, id string) (bool, error) {
	at, _, err := l.standing(ctx, id)
	if err != nil {
		return false, err
	}
	t, err := thread.Open(ctx, l.Store, at.Head)
	if err != nil {
		return false, err
	}
	w, err := t.Workflow(ctx)
	if err != nil {
		return false, err
	}
	for _, role := range w.Roles {
		if role.HasChildren() {
			return true, nil
		}
	}
	return false, nil
}

// checkState returns an error for an impossible state.
func checkState(id string, s remote.State) error {
	switch {
	case s.Thread != id:
		return remote.Faultf("sent thread %[2]q instead of %[1]s", id, s.Thread)
	case !s.Head.Valid():
		return remote.Faultf("the head of thread %s is %q, which is not a hash", id, s.Head)
	case s.Facts.Parent != nil && !threadid.Valid(s.Facts.Parent.Thread):
		return remote.Faultf("thread %s has invalid parent %q", id, s.Facts.Parent.Thread)
	}
	return nil
}

// importThreads imports the requested threads.
func (p *pulling) importThreads(ctx context.Context) (done Pulled, err error) {
	done = Pulled{Threads: []bundle.ImportedThread{}, at: p.at}
	var free []func() error
	defer func() {
		for _, f := range free {
			err = errors.Join(err, f())
		}
	}()
	open := func() (*bundle.File, error) {
		if err := p.look(ctx); err != nil {
			return nil, err
		}
		f, objects, drop, err := p.receive(ctx)
		done.Objects, free = objects, append(free, drop)
		return f, err
	}
	imported, err := bundle.Import(ctx, bundle.Target{Store: p.Store, Index: p.Heads}, bundle.ImportOptions{
		From: "remote " + p.Name, Now: p.Engine.Reader.Env.Now, Lock: p.Engine.Exclusive, Waits: p.waiting,
		Seen: p.lastSeen, Facts: p.taken,
		Own: func(thread string) bool { return p.own(ctx, thread) }, Keep: p.Engine.Files().KeepFiles,
		Links: p.options.Links || p.Trusted,
	}, open)
	if err != nil {
		return done, err
	}
	done.Threads, done.Nodes, done.Redactions = imported.Threads, imported.Added, imported.Redactions
	for _, t := range imported.Threads {
		if err := p.settled(ctx, t); err != nil {
			return done, err
		}
	}
	return done, nil
}

// receive fetches the nodes and files that are missing here.
func (p *pulling) receive(ctx context.Context) (f *bundle.File, objects int, free func() error, err error) {
	spool, err := os.CreateTemp(p.Engine.Reader.Dirs.Home, ".pull-*")
	if err != nil {
		return nil, 0, func() error { return nil }, err
	}
	close := func() {}
	free = func() error {
		close()
		return errors.Join(spool.Close(), os.Remove(spool.Name()))
	}
	parts := bundle.NewParts(spool, p.Store)
	if f, err = p.fetch(ctx, parts); err == nil {
		objects, close, err = p.fetchFiles(ctx, f, parts)
	}
	return f, objects, free, err
}

// look reads the local states of the threads.
func (p *pulling) look(ctx context.Context) error {
	p.here, p.facts = map[string]heads.ThreadState{}, map[string]heads.Facts{}
	for id := range p.at {
		at, known, err := p.standing(ctx, id)
		if err != nil {
			return err
		}
		if !known {
			continue
		}
		if p.facts[id], err = p.Heads.Facts(ctx, id); err != nil {
			return err
		}
		p.here[id] = at
	}
	return nil
}

// fetch fetches the nodes that are missing here.
func (p *pulling) fetch(ctx context.Context, parts *bundle.Parts) (*bundle.File, error) {
	m := bundle.Manifest{}
	var roots, have []cas.Hash
	for _, s := range p.at {
		t := bundle.Thread{Thread: s.Thread, Head: s.Head}
		if roots = append(roots, s.Head); s.Ended != nil {
			t.Workflow, t.Status, t.CompletedAt = s.Ended.Workflow, s.Ended.Status, s.Ended.CompletedAt
			roots = append(roots, s.Ended.Workflow)
		}
		m.Threads = append(m.Threads, t)
		if at, known := p.here[s.Thread]; known {
			have = append(have, at.Head)
		}
	}
	roots = slices.DeleteFunc(roots, func(h cas.Hash) bool { return h == "" }) // unreadable when the thread was ended
	slices.Sort(have)
	have = slices.Compact(have)
	lacking, err := p.lacking(ctx, roots, have)
	if err != nil {
		return nil, err
	}
	for record, err := range remote.GetAll(ctx, p.Remote, lacking) {
		if err != nil {
			return nil, p.withRepairHint(err)
		}
		if len(lacking) == 0 || record.Hash != lacking[0] {
			return nil, remote.Faultf("sent node %q, which was not requested", record.Hash)
		}
		lacking = lacking[1:]
		if p.size += int64(len(record.File)); p.size > maxPull {
			return nil, remote.Faultf("sent more than %d bytes", int64(maxPull))
		}
		if err := parts.Add(record.Hash, record.File); err != nil {
			return nil, err
		}
	}
	if len(lacking) > 0 {
		return nil, &remote.MissingError{Hash: string(lacking[0])}
	}
	return parts.File(m, have...)
}

// withRepairHint adds to an error about damage at the remote how another user can repair it.
func (p *pulling) withRepairHint(err error) error {
	if coded := (*protocol.Error)(nil); isDamage(err) && errors.As(p.of(p.about, err), &coded) {
		return coded.Because("damaged-there", "thread", p.about, "at", p.Name)
	}
	return err
}

// lacking returns the nodes that the remote lists and that are missing here.
func (p *pulling) lacking(ctx context.Context, roots, have []cas.Hash) (lacking []cas.Hash, err error) {
	listed := map[uint64]bool{}
	for h, err := range p.Remote.Walk(ctx, roots, have) {
		if err != nil {
			return nil, p.withRepairHint(err)
		}
		if !h.Valid() || len(listed) == remote.MaxNodes {
			return nil, remote.Faultf("listed %q as node %d", h, len(listed)+1)
		}
		if listed[h.Number()] {
			continue
		}
		listed[h.Number()] = true
		here, err := p.has(ctx, h)
		if err != nil {
			return nil, err
		}
		if !here {
			lacking = append(lacking, h)
		}
	}
	return lacking, nil
}

// has reports whether a node is here or was redacted here. Imported tombstones don't count, so that the node
// is fetched.
func (p *pulling) has(ctx context.Context, h cas.Hash) (bool, error) {
	_, err := p.Store.Get(ctx, h)
	if errors.Is(err, cas.ErrNotFound) {
		return false, nil
	}
	if redacted, ok := cas.AsRedacted(err); ok {
		return !redacted.Tombstone.Foreign, nil
	}
	if torn := (*cas.CorruptError)(nil); errors.As(err, &torn) && torn.Cut { // a power failure during a pull
		return false, nil
	}
	return err == nil, err
}

// lastSeen returns the last head that both sides shared, or the local head if the local work is discarded.
func (p *pulling) lastSeen(thread string) cas.Hash {
	if at, known := p.here[thread]; known && p.options.Discard {
		return at.Head
	}
	return p.seen(p.facts[thread])
}

// waiting returns the local pending step of a thread, or "" if the local work is discarded.
func (p *pulling) waiting(ctx context.Context, thread string) cas.Hash {
	if p.options.Discard {
		return ""
	}
	return p.Engine.Waiting(ctx, thread)
}

// own reports whether the remote's head is the step made last here. This happens if the process that pushed
// it was killed before the local head moved.
func (p *pulling) own(ctx context.Context, thread string) bool {
	at, known := p.here[thread]
	return known && p.Engine.Reader.MadeHere(ctx, thread, at.Head, p.at[thread].Head)
}

// taken returns the remote's facts for a thread that moves to the remote's head. The parent isn't taken from
// them, but from the chain.
func (p *pulling) taken(thread string) heads.Facts {
	incoming := shared(p.at[thread].Facts)
	incoming.Parent = nil
	if incoming.Title != nil && (!utf8.ValidString(*incoming.Title) || utf8.RuneCountInString(*incoming.Title) > protocol.MaxTitle) {
		incoming.Title = nil
	}
	if l := incoming.Limits; l != nil && (!sensible(*l) || p.mine(thread)) {
		incoming.Limits = nil
	}
	incoming.Repository = sensibleRepository(incoming.Repository)
	incoming.Redacted = sensibleRedacted(p.at[thread].Facts.Redacted).And(p.facts[thread].Redacted)
	incoming.Remote = p.now(p.at[thread].Head)
	return incoming
}

// mine reports whether a thread was started here and the remote is not trusted. If so, the local limits
// apply.
func (p *pulling) mine(thread string) bool {
	_, known := p.here[thread]
	return known && !p.Trusted && p.facts[thread].StartedHere()
}

func sensible(l heads.Limits) bool {
	return !l.Negative() && !(protocol.Limits{}).WithAmount(l.More).Negative()
}

// settled records the new state of a thread.
func (p *pulling) settled(ctx context.Context, t bundle.ImportedThread) error {
	switch t.Result {
	case bundle.Added, bundle.Advanced, bundle.Replaced:
		if t.Result == bundle.Replaced {
			if err := p.Engine.Follow(ctx, t.Thread, t.Was); err != nil {
				p.warn("left the worktree of thread %s as it is: %v", t.Thread, err)
			}
		}
		if p.own(ctx, t.Thread) {
			return nil
		}
		if p.Trusted {
			return p.Engine.Origins().TrustThread(ctx, t.Thread)
		}
		if own, err := p.ownWorkflow(ctx, t); err != nil || own != "" {
			return cmp.Or(err, p.Engine.Origins().TrustOwn(ctx, own))
		}
		return p.Engine.Origins().NoteForeign(ctx, t.Head)
	case bundle.Unchanged, bundle.Ahead:
		return p.see(ctx, t.Thread, p.at[t.Thread].Head, p.facts[t.Thread])
	}
	return nil
}

// ownWorkflow returns the workflow of a thread that was started here, if it still runs the one that its owner
// chose; else "".
func (p *pulling) ownWorkflow(ctx context.Context, t bundle.ImportedThread) (cas.Hash, error) {
	if !p.mine(t.Thread) || p.facts[t.Thread].Fork != nil {
		return "", nil
	}
	before, err := thread.Open(ctx, p.Store, p.here[t.Thread].Head)
	if err != nil {
		return "", err
	}
	now, err := thread.Open(ctx, p.Store, t.Head)
	if err != nil || now.Start.Workflow != before.Start.Workflow {
		return "", err
	}
	return now.Start.Workflow, nil
}

// Fetch pulls the remote's threads that exist here, or all of them if all is set. A diverged or rejected
// thread doesn't stop the others; Fetch returns the first error.
func (l *Link) Fetch(ctx context.Context, all bool) (Pulled, error) {
	done := Pulled{Threads: []bundle.ImportedThread{}, at: map[string]remote.State{}}
	if err := l.heed(ctx); err != nil {
		return done, l.of("", err)
	}
	here, damage := heads.ThreadStates(ctx, l.Heads)
	var states []remote.State // threads to pull, without their facts
	for s, err := range l.list(ctx, remote.Filter{}) {
		if err != nil {
			return done, l.of("", err)
		}
		if len(states) == remote.MaxThreads {
			return done, l.of("", &remote.LimitError{Most: remote.MaxThreads, Of: "threads"})
		}
		_, known := here[s.Thread]
		if s.Facts.Parent == nil && (all || known || damage != nil) {
			states = append(states, remote.State{Thread: s.Thread, Head: s.Head, Ended: s.Ended})
		}
	}
	var first error
	for _, s := range states {
		at, known, err := l.standing(ctx, s.Thread)
		if err == nil && (!known && !all) {
			continue
		}
		var one Pulled
		alone := err == nil && known && at.Head == s.Head && (at.End != nil || s.Ended == nil)
		if alone {
			has, readErr := l.hasChildren(ctx, s.Thread)
			alone = readErr == nil && !has
		}
		if alone {
			one.Threads = []bundle.ImportedThread{{Thread: s.Thread, Head: s.Head, Result: bundle.Unchanged}}
		} else if err == nil {
			one, err = l.Pull(ctx, []string{s.Thread}, PullOptions{})
		}
		if coded := new(protocol.Error); errors.As(err, &coded) && coded.Code == protocol.CodeDiverged {
			one.Threads = append(one.Threads, bundle.ImportedThread{Thread: s.Thread, Head: at.Head, Result: Diverged})
		}
		if err != nil && first == nil {
			first = l.of(s.Thread, err)
		}
		if ctx.Err() != nil {
			return done, first
		}
		done.Threads = append(done.Threads, one.Threads...)
		done.Nodes, done.Objects = done.Nodes+one.Nodes, done.Objects+one.Objects
		done.Redactions = append(done.Redactions, one.Redactions...)
	}
	return done, first
}

// DefaultLease is the duration of a lease without renewal.
const DefaultLease = 30 * time.Second

// Options are the options of [Link.Do]. The zero value is valid.
type Options struct {
	// Lease is the duration of the lease after its last renewal; 0 means [DefaultLease].
	Lease time.Duration
}

// Do works on a thread at the remote: it takes the lease, pulls, works, and publishes each step. It doesn't
// work on children; the output of a thread that waits for children lists them.
func (l *Link) Do(ctx context.Context, thread string, w engine.Work, o Options) ([]protocol.StepOutput, error) {
	var outs []protocol.StepOutput
	err := l.With(ctx, thread, w.Expect, o, func(ctx context.Context, e *engine.Engine) error {
		if w.Steps == engine.UntilEnd {
			w.Steps = Many
		}
		w.Expect = ""
		var err error
		outs, err = e.Do(ctx, thread, w)
		return err
	})
	return outs, err
}

// Many as [engine.Work].Steps runs until the end, but without the steps of children.
const Many = 1 << 30

// With calls do for a thread under its lease, at the remote's state. The engine passed to do moves the
// remote's head first.
func (l *Link) With(ctx context.Context, thread string, expect cas.Hash, o Options,
	do func(context.Context, *engine.Engine) error) error {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	held, err := l.take(ctx, thread, o.Lease)
	if err != nil {
		return l.of(thread, err)
	}
	defer held.end(context.WithoutCancel(ctx))
	at, err := l.meet(ctx, thread, held)
	if err != nil {
		return l.of(thread, err)
	}
	here, _, err := l.standing(ctx, thread)
	if err != nil {
		return l.of(thread, err)
	}
	if err := engine.Expected(thread, expect, here.Head); err != nil {
		return err
	}
	with := *l.Engine
	with.Shared = true
	if report := with.Events; report != nil && expect != "" {
		with.Events = func(ev engine.Event) { // a caller who sets expect has already seen the question
			if ev.Kind != engine.AtRest || ev.Notice != protocol.NoticeWaiting || ev.Output.Head != expect {
				report(ev)
			}
		}
	}
	with.Reader.Heads = &published{index: l.Heads, link: l, lease: held, at: at}
	return do(ctx, &with)
}

// meet synchronizes both sides; at holds the remote's states of the thread and its relatives.
func (l *Link) meet(ctx context.Context, thread string, held *lease) (at map[string]remote.State, err error) {
	done, err := l.Pull(ctx, []string{thread}, PullOptions{})
	if err != nil {
		return nil, err
	}
	at = done.at
	for _, t := range done.Threads {
		if t.Thread != thread || t.Result != bundle.Ahead && t.Result != bundle.Unchanged {
			continue
		}
		here, _, err := l.standing(ctx, thread)
		if err != nil {
			return nil, err
		}
		if there := at[thread]; there.Head == here.Head && (there.Ended != nil) == (here.End != nil) {
			continue
		}
		facts, err := l.Heads.Facts(ctx, thread)
		if err != nil {
			return nil, err
		}
		p := Pushed{Thread: thread, Head: here.Head}
		if err := l.pushOnce(ctx, here, facts, &p, held.current()); err != nil {
			return nil, err
		}
		if p.Result == bundle.Advanced || p.Result == bundle.Replaced {
			at[thread] = remote.State{Thread: thread, Head: here.Head, Ended: ended(here.End)}
		}
	}
	return at, nil
}

// lease is a lease that is renewed until it is released.
type lease struct {
	link     *Link
	thread   string
	duration time.Duration
	stop     func()
	done     chan struct{}

	mu    sync.Mutex
	fence int64
}

// take takes the lease of a thread and renews it in the background.
func (l *Link) take(ctx context.Context, thread string, duration time.Duration) (*lease, error) {
	got, err := l.Remote.Take(ctx, thread, l.Holder, duration)
	if err != nil {
		return nil, err
	}
	beating, stop := context.WithCancel(context.WithoutCancel(ctx))
	held := &lease{link: l, thread: thread, duration: duration, fence: got.Fence, stop: stop, done: make(chan struct{})}
	go held.beat(beating)
	return held, nil
}

func (h *lease) current() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.fence
}

// beat renews the lease until it is released or another client has it. In the latter case, running work
// continues, and the compare-and-swap decides whether it counts.
func (h *lease) beat(ctx context.Context) {
	defer close(h.done)
	const perLease = 3
	tick := time.NewTicker(h.duration / perLease)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		_, err := h.link.Remote.Renew(ctx, h.thread, h.current(), h.duration)
		var fence *remote.FenceError
		if errors.As(err, &fence) {
			err = h.again(ctx)
		}
		var leased *remote.LeasedError
		if errors.As(err, &leased) {
			h.link.warn("the lease of thread %s has expired, and %s works on it now; the first to finish a step "+
				"wins, and steps made here are kept",
				h.thread, plaintext.Line(leased.Lease.Holder))
			return
		}
	}
}

// again takes an expired lease again.
func (h *lease) again(ctx context.Context) error {
	got, err := h.link.Remote.Take(ctx, h.thread, h.link.Holder, h.duration)
	if err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.fence = got.Fence
	return nil
}

// end releases the lease. If that fails, the lease expires by itself.
func (h *lease) end(ctx context.Context) {
	h.stop()
	<-h.done
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = h.link.Remote.Release(ctx, h.thread, h.current())
}

// Wait waits until no client works on a thread at the remote.
func (l *Link) Wait(ctx context.Context, thread string) error {
	for {
		at, err := l.Remote.Thread(ctx, thread)
		if err != nil || at.Lease == nil {
			return l.of(thread, err)
		}
		if err := retry.Pause(ctx, time.Second); err != nil {
			return err
		}
	}
}

// holderName returns the holder of a lease as shown to users: user, host and process.
func holderName(user, host string, pid int) string {
	name := fmt.Sprintf("%s@%s, process %d", user, host, pid)
	if len(name) > remote.MaxHolder {
		name = fmt.Sprintf("process %d", pid)
	}
	return name
}
