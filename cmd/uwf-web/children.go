package main

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Bounds on the children that a page shows.
const (
	childrenShown = 1000 // others are only counted
	childrenBelow = 10   // children whose own children are shown
	grandchild    = 10   // grandchildren per child
	childrenRead  = 300  // children of joined steps per page; a step's own page has all of its children
)

// threadLink returns the URL of a thread's page, or "" for an invalid ID.
func (s *server) threadLink(id string) string {
	if !threadid.Valid(id) {
		return ""
	}
	return s.link("thread", id)
}

// childrenOf returns the children started for the next role, two generations deep, or nil.
func (s *server) childrenOf(ctx context.Context, all []protocol.ChildOutput, started []status.StartedChild) *htmlpage.Children {
	heads := map[string]protocol.Hash{}
	for _, k := range started {
		heads[k.Thread] = k.Head
	}
	all = slices.DeleteFunc(slices.Clone(all), func(c protocol.ChildOutput) bool { return heads[c.Thread] == "" })
	k := htmlpage.ChildrenOf(all, childrenShown, s.threadLink)
	if k == nil {
		return nil
	}
	k.AddTasks(ctx, s.engine.Reader.Store, heads)
	below := 0
	for i, c := range view.ByUrgency(all)[:len(k.Shown)] {
		if c.Status != protocol.StatusRunning && c.Status != protocol.StatusWaitingForChildren &&
			c.Status != protocol.StatusSuspended || below == childrenBelow {
			continue
		}
		at, err := s.engine.Reader.Show(ctx, c.Thread)
		if err != nil {
			continue // its own page reports the error
		}
		below++
		if at.CurrentRole != "" {
			k.Shown[i].Doing = htmlpage.Line(string(at.CurrentRole), htmlpage.Longest)
		}
		k.Shown[i].Below = htmlpage.ChildrenOf(at.Children, grandchild, s.threadLink)
	}
	return k
}

// joinedBy returns the children whose results a step has joined, or nil. If most is 0, it only counts them.
func (s *server) joinedBy(ctx context.Context, id string, step thread.Step, most int) *htmlpage.Children {
	var all []protocol.ChildOutput
	var err error
	if most > 0 {
		all, err = s.engine.Reader.JoinedBy(ctx, id, step)
	}
	heads := map[string]protocol.Hash{}
	for i, c := range all {
		heads[c.Thread] = step.Children[i].Head
	}
	for _, c := range step.Children[len(all):] { // unreadable children
		all = append(all, protocol.ChildOutput{Key: c.Key, Status: c.Status})
	}
	k := htmlpage.ChildrenOf(all, most, s.threadLink)
	k.AddTasks(ctx, s.engine.Reader.Store, heads)
	if k != nil && err != nil {
		k.Lost = htmlpage.Line(err.Error(), htmlpage.LongestTitle)
	}
	return k
}

// joined returns the children of steps, up to the limit of a page, newest first.
func (s *server) joined(ctx context.Context, id string, steps []thread.Step) []*htmlpage.Children {
	kids, left := make([]*htmlpage.Children, len(steps)), childrenRead
	for i, step := range slices.Backward(steps) {
		most := childrenShown
		if left -= len(step.Children); left < 0 {
			most = 0
		}
		kids[i] = s.joinedBy(ctx, id, step, most)
	}
	return kids
}

// part is a thread's relation to its parent thread.
type part struct{ Thread, Key, Link string }

func (s *server) partOf(ctx context.Context, id string) *part {
	facts, err := s.engine.Reader.Heads.Facts(ctx, id)
	if err != nil || facts.Parent == nil || !threadid.Valid(facts.Parent.Thread) {
		return nil
	}
	return &part{Thread: facts.Parent.Thread, Key: htmlpage.Line(facts.Parent.Key, htmlpage.Longest),
		Link: s.link("thread", facts.Parent.Thread)}
}
