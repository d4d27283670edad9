package engine

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// A role may be played by threads of their own: its children. Which they are follows
// from the chain; their ids follow from it, too, so a child either is in the heads or
// has not been started. Where the parent stands follows from where they stand.

// kid is a child of a position.
type kid struct {
	moderator.Child
	id    string
	head  protocol.Hash // "": it has not been started
	ended *heads.Ended
	out   protocol.StepOutput // where it stands, while it is active
}

// status is where a child stands; idle if it has not been started.
func (k kid) status() protocol.Status {
	switch {
	case k.head == "":
		return protocol.StatusIdle
	case k.ended != nil:
		return k.ended.Status
	}
	return k.out.Status
}

// keyOf names an item by its content.
func keyOf(item any) (string, error) {
	data, err := cas.Encode(item)
	return string(cas.XXH3.Sum("", data)), err
}

// attemptKey is that of the facts for all children of a role, or for one of them.
func attemptKey(head protocol.Hash, role, key string) string {
	text := string(head) + "/" + role
	if key != "" {
		text += "/" + key
	}
	return text
}

// asked is how often the children of a role were asked for anew at this head.
func (p *position) asked(role string) int {
	return p.facts.Attempts[attemptKey(p.thread.Head, role, "")]
}

// attemptOf is the number of a child's attempt. Those of one child alone go on from
// those of all, with numbers that all never have.
func (p *position) attemptOf(role, key string) int {
	const apart = 1000
	return p.asked(role)*apart + p.facts.Attempts[attemptKey(p.thread.Head, role, key)]
}

// kids are the children of a position, and where they stand.
func (e *Engine) kids(ctx context.Context, p *position) ([]kid, error) {
	kids := make([]kid, len(p.next.Children))
	byID := make(map[string]*kid, len(kids))
	for i, c := range p.next.Children {
		id, err := threadid.Child(p.id, string(p.thread.Head), p.next.Role, p.attemptOf(p.next.Role, c.Key), c.Key)
		if err != nil {
			return nil, err
		}
		kids[i] = kid{Child: c, id: id}
		byID[id] = &kids[i]
	}
	if err := e.find(ctx, byID); err != nil {
		return nil, err
	}
	about := e
	for i := range kids {
		k := &kids[i]
		if k.head == "" || k.ended != nil {
			continue
		}
		if about == e {
			about = e.aware(ctx, k.id)
		}
		out, _, err := about.showActive(ctx, k.id, k.head)
		if err != nil {
			return nil, err
		}
		out.Output = nil // many may be large
		k.out = out
	}
	return kids, nil
}

// aware returns an engine that has read what is known of all threads, and reads each
// workflow once.
func (e *Engine) aware(ctx context.Context, id string) *Engine {
	with := e.configOnce()
	if with.workflows == nil {
		with = with.remembering()
	}
	if with.factsOf != nil {
		if _, known := with.factsOf(id); known {
			return with
		}
	}
	// A line that cannot be read is about a thread that a person is asked for anyway.
	if all, _ := e.Heads.AllFacts(ctx); all != nil {
		with.factsOf = func(thread string) (heads.Facts, bool) { return all[thread], true }
	}
	return with
}

// find looks children up: the active ones in one pass, and the others, if any, in
// another one.
func (e *Engine) find(ctx context.Context, kids map[string]*kid) error {
	if len(kids) == 0 {
		return nil
	}
	const few = 3
	if len(kids) <= few {
		for id, k := range kids {
			var err error
			if k.head, k.ended, err = e.lookup(ctx, id); err != nil && !errors.Is(err, heads.ErrNoThread) {
				return err
			}
		}
		return nil
	}
	left := len(kids)
	for h, err := range e.Heads.Heads(ctx) {
		if err != nil {
			continue // it is about one thread; if that is a child, starting it says so
		}
		if k := kids[h.Thread]; k != nil {
			k.head = h.Hash
			left--
		}
	}
	if left == 0 {
		return ctx.Err()
	}
	for line, err := range e.Heads.History(ctx) {
		if err != nil {
			continue // a damaged old line must not hide the others here
		}
		if k := kids[line.Thread]; k != nil && (k.head == "" || k.ended != nil) { // the newest line counts
			k.head, k.ended = line.Head, &line
		}
	}
	return ctx.Err()
}

// ofKids says where a thread stands whose children are at work.
func (p *position) ofKids(out *protocol.StepOutput) {
	count := map[protocol.Status]int{}
	var failed, suspended *kid
	for i := range p.kids {
		k := &p.kids[i]
		status := k.status()
		count[status]++
		out.Children = append(out.Children, protocol.ChildOutput{Key: k.Key, Thread: k.id, Status: status})
		if failed == nil && (status == protocol.StatusFailed || status == protocol.StatusCorrupt) {
			failed = k
		}
		if suspended == nil && status == protocol.StatusSuspended {
			suspended = k
		}
	}
	started, over := true, true
	for _, k := range p.kids {
		started = started && k.head != ""
		over = over && k.ended != nil
	}
	switch {
	case !started, over:
		out.Status = protocol.StatusIdle // the next step starts them, or joins
	case count[protocol.StatusIdle]+count[protocol.StatusRunning]+count[protocol.StatusWaiting] > 0:
		out.Status = protocol.StatusWaiting
	case failed != nil:
		out.Status = protocol.StatusFailed
		out.Error = stepError(p.failedKids(failed))
	case count[protocol.StatusParked] > 0:
		out.Status = protocol.StatusParked
		for _, k := range p.kids {
			if until := k.out.ParkedUntil; until != nil && (out.ParkedUntil == nil || *until < *out.ParkedUntil) {
				out.ParkedUntil = until
			}
		}
	case suspended != nil:
		out.Status, out.CurrentRole = protocol.StatusSuspended, nil
		role := p.next.Role
		out.SuspendedRole, out.SuspendMessage = &role, suspended.out.SuspendMessage
		out.Question, out.Error = suspended.out.Question, suspended.out.Error
	}
}

// failedKids says that children have failed, and how to go on.
func (p *position) failedKids(first *kid) *protocol.Error {
	n := 0
	for _, k := range p.kids {
		if s := k.status(); s == protocol.StatusFailed || s == protocol.StatusCorrupt {
			n++
		}
	}
	why, code := "it is "+string(first.status()), protocol.CodeFailed
	if e := first.out.Error; e != nil {
		why = e.Message
		if e.Code != "" {
			code = e.Code
		}
	}
	err := fault.New(code, "%d of %d children of role %q failed; %s: %s", n, len(p.kids), p.next.Role, first.Key, why)
	return fault.Hinted(err, "uwf thread resume "+p.id+" tries those again, and no other",
		"uwf thread kill "+childAddress(p.id, first.Key)+" lets it count as failed")
}

// childAddress names a child on a command line.
func childAddress(parent, key string) string { return parent + "/" + key }

// Child finds a child of a thread by its key: of the role that is next, else of the
// newest step that has joined one of that key. Errors are *protocol.Error.
func (e *Engine) Child(ctx context.Context, parent, key string) (string, error) {
	head, err := e.Head(ctx, parent)
	if err != nil {
		return "", err
	}
	p, err := e.position(ctx, parent, head)
	if err != nil {
		return "", fault.Of(err)
	}
	var keys []string
	for _, k := range p.kids {
		if k.Key == key && k.head != "" {
			return k.id, nil
		}
		keys = append(keys, k.Key)
	}
	for s, err := range p.thread.Steps(ctx) {
		if err != nil {
			return "", fault.Of(err)
		}
		for _, c := range s.Children {
			if c.Key == key {
				return e.joined(ctx, parent, s, c)
			}
		}
	}
	none := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("thread %s has no child %s", parent, strconv.Quote(key))}
	return "", fault.Hinted(fault.Hinted(none, nearest(key, keys)...), "uwf thread show "+parent)
}

// Joined are the children of the newest step that has joined some.
func (e *Engine) Joined(ctx context.Context, parent string, head protocol.Hash) ([]protocol.ChildOutput, error) {
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return nil, err
	}
	if w, err := e.workflow(ctx, t.Start.Workflow); err != nil || !hasChildren(w) {
		return nil, err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if len(s.Children) == 0 {
			continue
		}
		var all []protocol.ChildOutput
		for _, c := range s.Children {
			id, err := e.joined(ctx, parent, s, c)
			if err != nil {
				return all, err
			}
			all = append(all, protocol.ChildOutput{Key: c.Key, Thread: id, Status: c.Status})
		}
		return all, nil
	}
	return nil, nil
}

// joined is the id of a child whose result a step has joined.
func (e *Engine) joined(ctx context.Context, parent string, s thread.Step, c protocol.ChildEnded) (string, error) {
	t, err := thread.Open(ctx, e.nodes(), c.Head)
	if err != nil {
		return "", fault.Of(err)
	}
	child := t.Start.Child
	if child == nil {
		return "", fault.New(protocol.CodeCorrupt, "step %s names %s as a child, which is none", s.Hash, c.Head)
	}
	id, err := threadid.Child(parent, string(child.Of), child.Role, child.Attempt, child.Key)
	if err != nil {
		return "", fault.Of(err)
	}
	return id, nil
}
