package slot

import (
	"context"
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

func (p *Pool) asking() []asked {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.waiting)
}

// Waiting are the threads that wait for a person, as steps of this worker have found.
func (p *Pool) Waiting() (all []flow.Request) {
	for _, a := range p.asking() {
		all = append(all, a.Request)
	}
	return all
}

// Look returns the head of an active thread at the remote; "": it has ended, or is not there.
type Look func(ctx context.Context, thread string) (protocol.Hash, error)

// Watch looks every so often whether threads have moved that wait for a person, and tells of those
// that have; tell reports whether it could. A person answers with uwf alone, which knows nothing of
// Temporal; so somebody has to
// look. Only threads are looked at that a step of this worker has left waiting: so each question is
// watched by one worker.
func (p *Pool) Watch(ctx context.Context, every time.Duration, look Look, tell func(flow.Request) bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	said := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, a := range p.asking() {
			head, err := look(ctx, a.Thread)
			if err != nil {
				if text := err.Error(); text != said && p.c.Log != nil && ctx.Err() == nil {
					said = text
					p.c.Log("threads that wait for a person cannot be looked at: " + text)
				}
				break // the next one would meet the same
			}
			said = ""
			if head != a.head {
				p.note(a.Request, flow.Outcome{})
				if !tell(a.Request) { // Temporal is away: the next look tells
					p.note(a.Request, flow.Outcome{Status: protocol.StatusSuspended, Head: a.head})
					break
				}
			}
		}
	}
}
