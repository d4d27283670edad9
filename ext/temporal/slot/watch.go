package slot

import (
	"context"
	"errors"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
)

// asked is a thread that waits for a person, as a step of this worker has found.
type asked struct {
	flow.Request
	head protocol.Hash
}

// note keeps in mind whether a thread waits for a person.
func (p *Pool) note(r flow.Request, out flow.Outcome) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.waiting = slices.DeleteFunc(p.waiting, func(a asked) bool { return a.Remote == r.Remote && a.Thread == r.Thread })
	if out.Status == protocol.StatusSuspended {
		p.waiting = append(p.waiting, asked{r, out.Head})
	}
}

// next is the thread to be looked at, which then is the last one to be looked at again.
func (p *Pool) next() (a asked, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.waiting) == 0 {
		return a, false
	}
	a = p.waiting[0]
	p.waiting = append(p.waiting[1:], a)
	return a, true
}

// Watch looks whether threads have moved that wait for a person, one each time, and tells
// of those that have. A person answers with uwf alone, which knows nothing of Temporal; so
// somebody has to look. Only threads are looked at that a step of this worker has left
// waiting: what it costs is bounded, and so is what is missed if the worker dies, by the
// looks of the workflow itself.
func (p *Pool) Watch(ctx context.Context, every time.Duration, tell func(flow.Request)) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		a, ok := p.next()
		if !ok {
			continue
		}
		moved, err := p.moved(ctx, a)
		if err != nil && p.c.Log != nil && ctx.Err() == nil {
			p.c.Log("thread " + a.Thread + " cannot be looked at: " + err.Error())
		}
		if moved {
			p.note(a.Request, flow.Outcome{})
			tell(a.Request)
		}
	}
}

// moved reports whether a thread stands elsewhere now.
func (p *Pool) moved(ctx context.Context, a asked) (bool, error) {
	at := &place{pool: p, dir: filepath.Join(p.dir, "watch"), store: p.borrow()}
	defer func() {
		at.clear()
		p.giveBack(at.store)
	}()
	if err := at.furnish(); err != nil {
		return false, err
	}
	ran, err := at.uwf(ctx, "thread", "show", a.Thread, "--remote", a.Remote)
	switch {
	case err != nil:
		return false, err
	case ran.code() == protocol.CodeNotFound:
		return true, nil // whoever makes the next step says so
	case ran.code() != "":
		return false, errors.New(string(ran.code()))
	}
	return ran.out.Head != a.head, nil
}
