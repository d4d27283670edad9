package main

import (
	"context"

	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/view/htmlpage"
	"github.com/united-workforce/uwf/protocol"
)

// What is shown of the threads that play a role together.
const (
	kidsShown  = 50 // the others are counted
	kidsBelow  = 10 // of those that have children of their own
	grandchild = 10 // of each of these
)

// kids are the children of a thread: counted, and those by name that matter now.
type kids struct {
	Counts []kidCount
	Shown  []kid
	More   int
}

type kidCount struct {
	N            int
	Status, Mood string
}

type kid struct {
	Key, Status, Mood, Link, Doing string
	Below                          *kids
}

// kidsOf are the children of a thread, two generations deep; nil: there are none.
func (s *server) kidsOf(ctx context.Context, all []protocol.ChildOutput) *kids {
	k := s.counted(all, kidsShown)
	if k == nil {
		return nil
	}
	below := 0
	for i, c := range view.ByUrgency(all)[:len(k.Shown)] {
		if c.Status != protocol.StatusRunning && c.Status != protocol.StatusWaiting && c.Status != protocol.StatusSuspended || below == kidsBelow {
			continue
		}
		at, err := s.engine.Show(ctx, c.Thread)
		if err != nil {
			continue // its own page says why
		}
		below++
		if at.CurrentRole != nil {
			k.Shown[i].Doing = htmlpage.Line(*at.CurrentRole, htmlpage.Longest)
		}
		k.Shown[i].Below = s.counted(at.Children, grandchild)
	}
	return k
}

func (s *server) counted(all []protocol.ChildOutput, most int) *kids {
	if len(all) == 0 {
		return nil
	}
	k := &kids{}
	for _, c := range view.ByUrgency(all) {
		status, mood := string(c.Status), htmlpage.Mood(c.Status)
		if n := len(k.Counts); n > 0 && k.Counts[n-1].Status == status {
			k.Counts[n-1].N++
		} else {
			k.Counts = append(k.Counts, kidCount{N: 1, Status: status, Mood: mood})
		}
		if len(k.Shown) == most {
			k.More++
			continue
		}
		shown := kid{Key: htmlpage.Line(c.Key, htmlpage.Longest), Status: status, Mood: mood}
		if validThread(c.Thread) {
			shown.Link = s.link("thread", c.Thread)
		}
		k.Shown = append(k.Shown, shown)
	}
	return k
}

// part is the thread that another one is a part of.
type part struct{ Thread, Key, Link string }

func (s *server) partOf(ctx context.Context, id string) *part {
	facts, err := s.engine.Heads.Facts(ctx, id)
	if err != nil || facts.Parent == nil || !validThread(facts.Parent.Thread) {
		return nil
	}
	return &part{Thread: facts.Parent.Thread, Key: htmlpage.Line(facts.Parent.Key, htmlpage.Longest), Link: s.link("thread", facts.Parent.Thread)}
}
