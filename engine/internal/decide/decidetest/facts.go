package decidetest

import (
	"slices"

	//lint:ignore ST1001 the model is about its words alone
	. "github.com/united-workforce/uwf/engine/internal/decide"
)

// read reads the facts of a thread.
func (w *world) read(i int, r Request, words int, v Variant) Facts {
	t := &w.threads[i]
	head := w.nodes[t.head]
	f := Facts{Busy: t.run.alive, Asked: t.run.asked, Run: t.run.state, Last: head.by}
	if r.Earlier && head.by != NoPlayer {
		f.Last = w.nodes[head.prev].by
	}
	f.Edited = t.dirty
	if r.Verb == Redo && len(t.undone) > 0 && t.laid == t.undone[0] {
		f.Edited = false
	}
	switch t.listed {
	case completed:
		f.Life = Completed
	case failed:
		f.Life = Failed
	case cancelled:
		f.Life = Cancelled
	case absent:
		f.Barrier = Unreadable
	}
	switch in := t.intent; {
	case in.on && !in.prepared:
		f.Intent = Moving
		back := slices.Contains(in.undone, in.head)
		f.SameMove = r.Verb == Undo && back || r.Verb == Redo && !back
	case in.on && in.head == t.head:
		f.Intent = Prepared
	case in.on:
		f.Intent = Settled
	}
	if f.Run != NoRun && t.run.head != t.head || f.Run == InFlight && t.run.result > 0 && w.inChain(t, t.run.result) {
		f.Run = Ended
	}
	if f.Run == InFlight && t.run.result > 0 {
		f.Result = Ready
		if v.ResultByIndex && t.run.asked == ByPoke && (r.Verb == Resume || r.Verb == Answer) {
			f.Result = NoResult
		}
	}
	if f.Run == Exhausted {
		_, f.OnError = w.failure(i, t.run.asked)
	}
	switch r.Verb {
	case Step, RunDue:
		f.Same = t.run.asked != ByWords && t.run.asked != ByPoke
	case Resume:
		f.Same = t.run.asked == ByWords && t.run.words == words
	case Poke:
		f.Same = t.run.asked == ByPoke && t.run.words == words && !r.Earlier
	case Answer:
		f.Same = t.run.asked == ByAnswer
	}
	f.RateLimited = t.waitsAt >= 0 && (v.LimitedByThread || t.waitsAt == t.head)
	if w.limited && !v.AccountIgnored {
		f.Account = Limited
	}
	switch {
	case f.Life == Completed || f.Life == Failed:
		f.Player = playerOf(t.roles[0])
	case head.asks:
		f.Next, f.Player = Asks, playerOf(t.roles[head.at-1])
	case w.atEnd(t):
		f.Next = AtEnd
	default:
		f.Player = playerOf(t.roles[head.at])
	}
	if f.Player == ByChildren && f.Life == Active {
		f.Children = w.children(t, v)
		f.NoChild = w.child(t) == 0
	}
	for k := range w.threads[1:] {
		f.ChildrenBusy = f.ChildrenBusy || i == 0 && w.threads[k+1].run.alive
	}
	f.CanRedo = len(t.undone) > 0 && w.nodes[t.undone[0]].prev == t.head
	if i > 0 && (!v.ChildByName || r.Verb == RunDue) {
		switch p := &w.threads[0]; {
		case w.unwanted(t):
			f.Owner = ParentMoved
		case w.open(0) && !(v.DueWhilePoked && p.run.asked == ByPoke):
			f.Owner = ParentOpen
		}
	}
	return f
}

func (w *world) unwanted(t *thread) bool {
	p := &w.threads[0]
	return t.of != p.head || t.attempt != w.nodes[t.of].attempts || p.listed == cancelled
}

// poked reports whether a poke in progress may change the head of the children's parent.
func (w *world) poked() bool {
	p := &w.threads[0]
	return p.run.state == InFlight && p.run.head == p.head && p.run.asked == ByPoke && (p.run.alive || w.waits(p))
}

func (w *world) children(t *thread, v Variant) Children {
	i := w.child(t)
	if i == 0 {
		return Missing
	}
	k := &w.threads[i]
	switch {
	case k.listed == absent && v.AbsentIsMissing:
		return Missing
	case k.listed == absent:
		return Doubtful
	case w.ended(i), k.listed != active && v.EndedWhilePoked:
		return AllEnded
	case k.listed != active:
		return Working
	case k.run.alive || w.waits(k):
		return Working
	case w.nodes[k.head].asks, w.nodes[k.head].at < len(k.roles) && k.roles[w.nodes[k.head].at] == 'p':
		return Asking
	}
	return Working
}
