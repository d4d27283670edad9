package status

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/sorting"
	"github.com/united-workforce/uwf/util/suggest"
	"github.com/united-workforce/uwf/util/threadid"
)

// Place returns the position of the next role's children in the thread.
func (p *Position) Place() children.Place {
	return children.Place{Thread: p.ID, Head: p.Thread.Head, Role: p.Next.Role}
}

// Children returns the children of a position with their states.
func (r *Reader) Children(ctx context.Context, p *Position) (children.Children, error) {
	kids, err := p.Place().Find(ctx, r.Heads, p.Facts, p.Next.Children)
	if err != nil {
		return nil, err
	}
	reader := r
	for i := range kids {
		k := &kids[i]
		if k.Ended != nil {
			k.Open = k.Ended.Status != protocol.StatusCancelled && r.IsOpen(k.ID, k.Head)
			if k.Out.Status = protocol.StatusIdle; k.Open && r.RunDir(k.ID).Alive(r.RunDir(k.ID).Read()) {
				k.Out.Status = protocol.StatusRunning
			}
		}
		if k.Head == "" || k.Ended != nil {
			continue
		}
		if reader == r {
			reader = r.withAllFacts(ctx, k.ID)
			reader.bounds = map[string][]bound{}
		}
		if k.Out, _, err = reader.showActive(ctx, k.ID, k.Head); err != nil {
			return nil, err
		}
		k.Out.Output = nil // the outputs of many children may be large
		if k.Out.Status == protocol.StatusSuspended && r.IsOpen(k.ID, k.Head) {
			k.Out.Status = protocol.StatusIdle // its next step adopts the pending answer
		}
	}
	return kids, nil
}

// StartedChild is a child that was started for the next role.
type StartedChild struct {
	Key    string
	Thread string
	Head   protocol.Hash
	Ended  bool
	Status protocol.Status // only set for an ended child
}

// Started returns the children that were started for the thread's next role, by key. It doesn't read their
// nodes. Errors are *protocol.Error.
func (r *Reader) Started(ctx context.Context, thread string) (_ []StartedChild, err error) {
	defer fault.Coded(&err)
	head, ended, err := r.Lookup(ctx, thread)
	if err != nil || ended != nil {
		return nil, err
	}
	_, w, err := r.chain(ctx, head)
	if err != nil || !hasChildren(w) {
		return nil, err
	}
	all, err := r.Heads.AllFacts(ctx)
	if all == nil {
		return nil, err
	}
	var ids []string
	for id, f := range all {
		if f.Parent != nil && f.Parent.Thread == thread && f.Parent.Head == head {
			ids = append(ids, id)
		}
	}
	states, err := children.Look(ctx, r.Heads, ids, nil)
	var kids []StartedChild
	for id, at := range states {
		k := StartedChild{Key: all[id].Parent.Key, Thread: id, Head: at.Head}
		if at.End != nil {
			k.Ended, k.Status = true, at.End.Status
		}
		kids = append(kids, k)
	}
	sorting.Func(kids, func(a, b StartedChild) int {
		return cmp.Or(strings.Compare(a.Key, b.Key), strings.Compare(a.Thread, b.Thread))
	})
	return kids, err
}

// withAllFacts returns a reader that has read the facts of all threads, and that reads each workflow once.
func (r *Reader) withAllFacts(ctx context.Context, id string) *Reader {
	with := r.ConfigOnce()
	if with.workflows == nil {
		with = with.Remembering()
	}
	if with.factsOf != nil {
		if _, known := with.factsOf(id); known {
			return with
		}
	}
	return with.knowingAll(ctx)
}

// chain returns the thread with a head, and its workflow.
func (r *Reader) chain(ctx context.Context, head protocol.Hash) (*thread.Thread, protocol.Workflow, error) {
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return nil, protocol.Workflow{}, err
	}
	w, err := r.Workflow(ctx, t.Start.Workflow)
	return t, w, err
}

// Child finds a child of a thread by key. It searches the children of the next role, then those of the newest
// step that joined a child with that key. Errors are *protocol.Error.
func (r *Reader) Child(ctx context.Context, parent, key string) (_ string, err error) {
	defer fault.Coded(&err)
	p, err := r.HeadPosition(ctx, parent)
	if err != nil {
		return "", err
	}
	var keys []string
	for _, k := range p.Children {
		switch {
		case k.Key == key && k.Head != "":
			return k.ID, nil
		case k.Key == key:
			later := &protocol.Error{Code: protocol.CodeNotFound,
				Message: fmt.Sprintf("child %s of thread %s has not been started yet", children.Named(key,
					children.LabelOf(k.Child)), parent)}
			return "", later.Because("child-not-started", "thread", parent)
		}
		keys = append(keys, k.Key)
	}
	for s, err := range p.Thread.Steps(ctx) {
		if err != nil {
			return "", err
		}
		if !slices.ContainsFunc(s.Children, func(c protocol.ChildEnded) bool { return c.Key == key }) {
			continue
		}
		joined, err := r.JoinedBy(ctx, parent, s)
		if err != nil {
			return "", err
		}
		for _, c := range joined {
			if c.Key == key {
				return c.Thread, nil
			}
		}
	}
	none := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("thread %s has no child %s", parent,
		strconv.Quote(key))}
	return "", none.Because("no-such-child", append(fault.Near(suggest.Nearest(key, keys, 3)), "thread", parent)...)
}

// Joined returns the children of the newest step that joined children.
func (r *Reader) Joined(ctx context.Context, parent string, head protocol.Hash) ([]protocol.ChildOutput, error) {
	t, w, err := r.chain(ctx, head)
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
		return r.JoinedBy(ctx, parent, s)
	}
	return nil, nil
}

// Labels maps the keys of the children that a step joined to the items they were started for. The labels
// aren't stored, so one that cannot be derived from the earlier steps is omitted.
func (r *Reader) Labels(ctx context.Context, w protocol.Workflow, s thread.Step) map[string]string {
	if w.Roles[s.Role].Each == nil {
		return nil
	}
	before := s.Start
	if s.Prev != nil {
		before = *s.Prev
	}
	t, err := thread.Open(ctx, r.Nodes(), before)
	if err != nil {
		return nil
	}
	state, err := r.state(ctx, w, t, &history{thread: t})
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

// JoinedBy returns the children whose results a step joined. If a fork shares the step with its original,
// they are the original's children. On an error it returns those found before. Errors are *protocol.Error.
func (r *Reader) JoinedBy(ctx context.Context, id string, s thread.Step) (_ []protocol.ChildOutput, err error) {
	defer fault.Coded(&err)
	all, starts := make([]protocol.ChildOutput, 0, len(s.Children)), make([]protocol.Child, 0, len(s.Children))
	var labels map[string]string
	if _, w, err := r.chain(ctx, s.Start); err == nil {
		labels = r.Labels(ctx, w, s)
	}
	for _, c := range s.Children {
		start, err := r.startOfJoined(ctx, s, c)
		if err != nil {
			return all, err
		}
		child, err := threadid.Child(id, string(start.Of), start.Role, start.Attempt, start.Key)
		if err != nil {
			return all, err
		}
		all, starts = append(all, protocol.ChildOutput{Key: c.Key, Thread: child, Status: c.Status, Label: labels[c.Key]}),
			append(starts, start)
	}
	for range maxForks {
		facts, err := r.Heads.Facts(ctx, id)
		if len(all) == 0 || err != nil || facts.Fork == nil || facts.Fork.Thread == "" {
			return all, err
		}
		if found, err := children.Look(ctx, r.Heads, []string{all[0].Thread}, nil); err != nil || len(found) > 0 {
			return all, err
		}
		id = facts.Fork.Thread
		for i, start := range starts {
			if all[i].Thread, err = threadid.Child(id, string(start.Of), start.Role, start.Attempt, start.Key); err != nil {
				return nil, err
			}
		}
	}
	return all, nil
}

// maxForks limits the length of a chain of forks.
const maxForks = 100

// startOfJoined returns what a step records about the start of a child that it joined.
func (r *Reader) startOfJoined(ctx context.Context, s thread.Step, c protocol.ChildEnded) (protocol.Child, error) {
	t, err := thread.Open(ctx, r.Nodes(), c.Head)
	if err != nil {
		return protocol.Child{}, err
	}
	if t.Start.Child == nil {
		return protocol.Child{}, fault.New(protocol.CodeCorrupt, "step %s refers to %s as a child, but it is not "+
			"one", s.Hash, c.Head)
	}
	return *t.Start.Child, nil
}
