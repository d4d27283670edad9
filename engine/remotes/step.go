package remotes

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/plaintext"
)

// DefaultLease is how long a lease lasts that nobody renews.
const DefaultLease = 30 * time.Second

// Options of [Link.Do]. The zero value works.
type Options struct {
	// Lease is how long the lease lasts after its last renewal; 0: [DefaultLease].
	Lease time.Duration
	// Discard as in [PullOptions].
	Discard bool
}

// Do works on a thread at the remote: it takes the lease, pulls, does the work, and publishes
// each step. It does not work on children: a thread that waits for some says which.
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

// Many is as many steps as it takes, without those of children.
const Many = 1 << 30

// With does something to a thread under its lease, at the state that the remote has, with an
// engine whose heads move there first.
func (l *Link) With(ctx context.Context, thread string, expect cas.Hash, o Options, do func(context.Context, *engine.Engine) error) error {
	if o.Lease == 0 {
		o.Lease = DefaultLease
	}
	held, err := l.take(ctx, thread, o.Lease)
	if err != nil {
		return l.of(thread, err)
	}
	defer held.end(context.WithoutCancel(ctx))
	at, err := l.meet(ctx, thread, o, held)
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
	if told := with.Rested; told != nil && expect != "" {
		with.Rested = func(event string, at protocol.StepOutput) {
			if event != protocol.NoticeWaiting || at.Head != expect { // whoever expects it has seen that question
				told(event, at)
			}
		}
	}
	with.Heads = &published{index: l.Heads, link: l, lease: held, at: at}
	return do(ctx, &with)
}

// meet brings both sides to where the thread stands; at is where the threads of its family
// stand at the remote.
func (l *Link) meet(ctx context.Context, thread string, o Options, held *lease) (at map[string]remote.State, err error) {
	done, err := l.Pull(ctx, []string{thread}, PullOptions{Discard: o.Discard})
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

// lease is one that is renewed until it is given back.
type lease struct {
	link     *Link
	thread   string
	duration time.Duration
	stop     func()
	done     chan struct{}

	mu    sync.Mutex
	fence int64
}

// take takes the lease of a thread, and keeps it.
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

// beat renews the lease until it is given back, or somebody else has it. Work in progress goes
// on then: the swap decides whether it counts.
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
			h.link.warn("the lease of thread %s has ended, and %s works on it now: what is made here counts only if it is made first, and stays here in any case",
				h.thread, plaintext.Line(leased.Lease.Holder))
			return
		}
	}
}

// again takes the lease again, after it has ended.
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

// end gives the lease back. If that fails, the lease expires by itself.
func (h *lease) end(ctx context.Context) {
	h.stop()
	<-h.done
	const patience = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	_ = h.link.Remote.Release(ctx, h.thread, h.current())
}

// Wait waits until nobody works on a thread at the remote.
func (l *Link) Wait(ctx context.Context, thread string) error {
	look := time.NewTicker(time.Second)
	defer look.Stop()
	for {
		at, err := l.Remote.Thread(ctx, thread)
		if err != nil || at.Lease == nil {
			return l.of(thread, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-look.C:
		}
	}
}

// HolderName says who takes leases: a person at a machine, in a process.
func HolderName(user, host string, pid int) string {
	name := fmt.Sprintf("%s@%s, process %d", user, host, pid)
	if len(name) > remote.MaxHolder {
		name = fmt.Sprintf("process %d", pid)
	}
	return name
}
