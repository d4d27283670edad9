package engine

import (
	"context"
	"fmt"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/children"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// place is where the children of the role that is next belong.
func (p *position) place() children.Place {
	return children.Place{Thread: p.id, Head: p.thread.Head, Role: p.next.Role}
}

// kids are the children of a position, and where they stand.
func (e *Engine) kids(ctx context.Context, p *position) (children.Kids, error) {
	kids, err := p.place().Find(ctx, e.Heads, p.facts, p.next.Children)
	if err != nil {
		return nil, err
	}
	about := e
	for i := range kids {
		k := &kids[i]
		if k.Head == "" || k.Ended != nil {
			continue
		}
		if about == e {
			about = e.aware(ctx, k.ID)
			about.bounds = map[string][]bound{}
		}
		if k.Out, _, err = about.showActive(ctx, k.ID, k.Head); err != nil {
			return nil, err
		}
		k.Out.Output = nil // many may be large
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
		switch {
		case k.Key == key && k.Head != "":
			return k.ID, nil
		case k.Key == key:
			later := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("child %s of thread %s has not been started yet", children.Named(key, children.LabelOf(k.Child)), parent)}
			return "", fault.Hinted(later, "uwf thread resume "+parent+" starts it, and uwf thread step "+parent+" does no more than that")
		}
		keys = append(keys, k.Key)
	}
	for s, err := range p.thread.Steps(ctx) {
		if err != nil {
			return "", fault.Of(err)
		}
		if !slices.ContainsFunc(s.Children, func(c protocol.ChildEnded) bool { return c.Key == key }) {
			continue
		}
		joined, err := e.JoinedBy(ctx, parent, s)
		if err != nil {
			return "", err
		}
		for _, c := range joined {
			if c.Key == key {
				return c.Thread, nil
			}
		}
	}
	none := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("thread %s has no child %s", parent, strconv.Quote(key))}
	return "", fault.Hinted(fault.Hinted(none, fault.Nearest(key, keys)...), "uwf thread show "+parent)
}

// Joined are the children of the newest step that has joined some.
func (e *Engine) Joined(ctx context.Context, parent string, head protocol.Hash) ([]protocol.ChildOutput, error) {
	t, err := thread.Open(ctx, e.nodes(), head)
	if err != nil {
		return nil, err
	}
	w, err := e.workflow(ctx, t.Start.Workflow)
	if err != nil || !hasChildren(w) {
		return nil, err
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if len(s.Children) == 0 {
			continue
		}
		return e.JoinedBy(ctx, parent, s)
	}
	return nil, nil
}

// Labels say, by key, which items the children were for that a step has joined. Nothing
// records them: what cannot be made once more of the steps before has none.
func (e *Engine) Labels(ctx context.Context, w protocol.Workflow, s thread.Step) map[string]string {
	if w.Roles[s.Role].Each == nil {
		return nil
	}
	before := s.Start
	if s.Prev != nil {
		before = *s.Prev
	}
	t, err := thread.Open(ctx, e.nodes(), before)
	if err != nil {
		return nil
	}
	state, err := e.state(ctx, w, t, &history{thread: t})
	if err != nil {
		return nil
	}
	d, err := moderator.Route(ctx, state)
	if err != nil {
		return nil
	}
	labels := make(map[string]string, len(d.Children))
	for _, c := range d.Children {
		labels[c.Key] = children.LabelOf(c)
	}
	return labels
}

// JoinedBy are the children whose results a step of a thread has joined. What a fork
// shares with the thread that it was forked from was made by children of that one. What
// was found before an error is returned with it. Errors are *protocol.Error.
func (e *Engine) JoinedBy(ctx context.Context, id string, s thread.Step) ([]protocol.ChildOutput, error) {
	all, starts := make([]protocol.ChildOutput, 0, len(s.Children)), make([]protocol.Child, 0, len(s.Children))
	var labels map[string]string
	if t, err := thread.Open(ctx, e.nodes(), s.Start); err == nil {
		if w, err := e.workflow(ctx, t.Start.Workflow); err == nil {
			labels = e.Labels(ctx, w, s)
		}
	}
	for _, c := range s.Children {
		start, err := e.startOfJoined(ctx, s, c)
		if err != nil {
			return all, err
		}
		id, err := threadid.Child(id, string(start.Of), start.Role, start.Attempt, start.Key)
		if err != nil {
			return all, fault.Of(err)
		}
		all, starts = append(all, protocol.ChildOutput{Key: c.Key, Thread: id, Status: c.Status, Label: labels[c.Key]}), append(starts, start)
	}
	for range maxForks {
		facts, err := e.Heads.Facts(ctx, id)
		if len(all) == 0 || err != nil || facts.Fork == nil || facts.Fork.Thread == "" {
			return all, fault.OrNil(err)
		}
		if found, err := children.Look(ctx, e.Heads, []string{all[0].Thread}, nil); err != nil || len(found) > 0 {
			return all, fault.OrNil(err)
		}
		id = facts.Fork.Thread
		for i, start := range starts {
			if all[i].Thread, err = threadid.Child(id, string(start.Of), start.Role, start.Attempt, start.Key); err != nil {
				return nil, fault.Of(err)
			}
		}
	}
	return all, nil
}

// maxForks bounds how many forks of forks are looked through.
const maxForks = 100

// startOfJoined is what the start of a child says that a step has joined.
func (e *Engine) startOfJoined(ctx context.Context, s thread.Step, c protocol.ChildEnded) (protocol.Child, error) {
	t, err := thread.Open(ctx, e.nodes(), c.Head)
	if err != nil {
		return protocol.Child{}, fault.Of(err)
	}
	if t.Start.Child == nil {
		return protocol.Child{}, fault.New(protocol.CodeCorrupt, "step %s names %s as a child, which is none", s.Hash, c.Head)
	}
	return *t.Start.Child, nil
}
