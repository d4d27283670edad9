package slot

import (
	"context"
	"slices"
	"time"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
)

// asked is a thread that waits for a person after a step of this worker.
type asked struct {
	flow.Request
	head protocol.Hash
}

// note records whether a thread waits for a person.
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

// Waiting returns the threads that wait for a person after a step of this worker.
func (p *Pool) Waiting() (all []flow.Request) {
	for _, a := range p.asking() {
		all = append(all, a.Request)
	}
	return all
}

// Look returns the head of an active thread at the remote, or "" if it has ended or doesn't exist.
type Look func(ctx context.Context, thread string) (protocol.Hash, error)

// Watch checks at an interval whether threads that wait for a person have moved, and calls notify for each that
// has. notify reports whether it succeeded. Watching is necessary because a person answers with uwf, which
// knows nothing about Temporal. A worker watches only the threads that its own steps have left waiting, so
// each question is watched by one worker.
func (p *Pool) Watch(ctx context.Context, every time.Duration, look Look, notify func(flow.Request) bool) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	reported := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		for _, a := range p.asking() {
			head, err := look(ctx, a.Thread)
			if err != nil {
				if text := err.Error(); text != reported && p.c.Log != nil && ctx.Err() == nil {
					reported = text
					p.c.Log("cannot check threads that wait for a person: " + text)
				}
				p.note(a.Request, flow.Outcome{Status: protocol.StatusSuspended, Head: a.head}) // last, if only this one is unreadable
				break                                                                           // the next one would probably fail as well
			}
			reported = ""
			if head != a.head {
				p.note(a.Request, flow.Outcome{})
				if !notify(a.Request) { // Temporal is unreachable; the next check tries again
					p.note(a.Request, flow.Outcome{Status: protocol.StatusSuspended, Head: a.head})
					break
				}
			}
		}
	}
}
