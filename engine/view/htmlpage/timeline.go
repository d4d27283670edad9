package htmlpage

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// Timeline is when the steps of a thread were made: a lane for each role, on one scale.
type Timeline struct {
	From, To    When
	First, Last int // step numbers; 0: none was made
	Lanes       []*Lane
	More        int // lanes that are not shown
	Shortened   bool
}

// Lane is what one role, or one child, has done.
type Lane struct {
	Name, Facts, Link string
	Bars              []Bar
	Children, Folded  []*Lane // who has played the role; the first few, and the others
	More              int     // children that are not shown
}

// Bar is a piece of a lane. X and W are percent of its width.
type Bar struct{ Kind, X, W, Title, Link string }

// The kinds of bars. A mark is a call of a tool, and has no width.
const (
	barWork = "work"
	barBusy = "busy" // until now
	barKids = "kids" // children are at work
	barWait = "wait"
	barMark = "mark"
)

// What a time line has at most.
const (
	mostLanes    = 40       // roles
	mostKids     = 200      // children that are read
	mostKidSteps = 50       // of each
	kidsUnfolded = 10       // of a role
	mostTurns    = 400      // that are read for the calls in them
	mostTurnText = 4 << 20  // bytes of them
	shortestWait = 1000     // ms: a shorter one is no wait
	narrowest    = 0.4      // percent of the width
	longestTitle = Longest  // of what the pointer is told
	pauseShare   = 0.3      // of the time at work, that all long pauses get together
	leastPause   = 0.005    // that each of them gets
	unknownTime  = int64(0) // of a step of an original that has none
)

// Now is what a thread does besides its steps. The zero value is nothing.
type Now struct {
	At       protocol.ThreadShow
	Flight   *status.Flight
	Children []status.StartedChild
	Joined   func(by thread.Step, child protocol.ChildEnded) Kid // a child with its page; nil: none has a page
	Thread   func(id string) string                              // the page of a thread; nil: there is none
}

// TimelineOf is the time line of steps of a thread, oldest first, and of what it does now.
// What cannot be read of turns and children is missing in it: the steps say so.
func TimelineOf(ctx context.Context, e *engine.Engine, steps []thread.Step, now Now) *Timeline {
	l := &lines{reader: e.Store, clock: e.Env.Now(), now: now, lanes: map[string]*line{}, turns: mostTurns, text: mostTurnText, kids: mostKids}
	kidsFrom := kidsFrom(steps)
	for i, s := range steps {
		prev := unknownTime
		if i > 0 {
			prev = steps[i-1].CompletedAtMs
		}
		l.step(ctx, s, prev, i >= kidsFrom)
	}
	for _, s := range slices.Backward(steps) { // the newest first: not all can be read
		if l.turns > 0 && l.text > 0 && len(s.Children) == 0 {
			if detail, err := thread.ShownDetail(ctx, e.Store, s.Detail); err == nil {
				l.marks(ctx, l.lane(s.Role), detail.Turns, s.StartedAtMs, s.CompletedAtMs)
			}
		}
	}
	last := unknownTime
	if len(steps) > 0 {
		last = steps[len(steps)-1].CompletedAtMs
	}
	l.open(ctx, last)
	t := l.placed()
	if t != nil && len(steps) > 0 {
		t.First, t.Last = steps[0].Index+1, steps[len(steps)-1].Index+1
	}
	return t
}

// lines is a time line in the making.
type lines struct {
	reader            cas.Reader
	clock             time.Time
	now               Now
	lanes             map[string]*line
	order             []*line
	turns, text, kids int // that may still be read
}

// line is a lane in the making.
type line struct {
	name, link     string
	spans          []span
	steps          int
	worked, waited int64
	lanes          map[string]*line
	order          []*line
	read, problem  bool
}

type span struct {
	kind        string
	from, to    int64 // ms
	title, link string
	first, last int // steps that are drawn as one
}

// kidsFrom is the first step whose children are read.
func kidsFrom(steps []thread.Step) int {
	kids := 0
	for i, s := range slices.Backward(steps) {
		if kids += len(s.Children); kids >= mostKids {
			return i
		}
	}
	return 0
}

// lane is that of a role.
func (l *lines) lane(role string) *line {
	return laneIn(&l.lanes, &l.order, role)
}

func laneIn(lanes *map[string]*line, order *[]*line, name string) *line {
	if *lanes == nil {
		*lanes = map[string]*line{}
	}
	if (*lanes)[name] == nil {
		(*lanes)[name] = &line{name: Line(name, Longest)}
		*order = append(*order, (*lanes)[name])
	}
	return (*lanes)[name]
}

// step adds a finished step, and the pause since the one before it.
func (l *lines) step(ctx context.Context, s thread.Step, prev int64, kids bool) {
	lane, from, kind := l.lane(s.Role), s.StartedAtMs, barWork
	lane.steps++
	if len(s.Children) > 0 {
		kind = barKids
		if prev != unknownTime {
			from = min(from, prev)
		}
	}
	lane.worked += max(0, s.CompletedAtMs-from)
	lane.wait(prev, from, fmt.Sprintf("before step %d", s.Index+1))
	took := render.Duration(max(0, s.CompletedAtMs-from))
	lane.add(span{kind: kind, from: from, to: s.CompletedAtMs, title: took, link: fmt.Sprintf("#s%d", s.Index+1), first: s.Index + 1, last: s.Index + 1})
	for i, c := range s.Children {
		kid := laneIn(&lane.lanes, &lane.order, c.Key)
		if !kids || l.kids == 0 {
			continue
		}
		l.kids--
		link, within := "", fmt.Sprintf("#s%d-%d-s", s.Index+1, i+1)
		if l.now.Joined != nil {
			joined := l.now.Joined(s, c)
			kid.name, link, within = cmp.Or(joined.Name, kid.name), joined.Link, ""
		}
		l.child(ctx, kid, c.Head, link, within)
	}
}

// child adds the steps of a chain to a lane, and returns when the last one ended.
func (l *lines) child(ctx context.Context, lane *line, head protocol.Hash, link, within string) (end int64) {
	lane.read, lane.link = true, cmp.Or(link, lane.link)
	t, err := thread.Open(ctx, l.reader, head)
	if err != nil {
		lane.problem = true
		return unknownTime
	}
	steps, _, err := chainOf(ctx, t, mostKidSteps)
	lane.problem = lane.problem || err != nil
	for _, s := range steps {
		lane.wait(end, s.StartedAtMs, fmt.Sprintf("before its step %d", s.Index+1))
		lane.steps++
		lane.worked += max(0, s.CompletedAtMs-s.StartedAtMs)
		to := link
		if within != "" {
			to = within + fmt.Sprint(s.Index+1)
		}
		lane.add(span{
			kind: barWork, from: s.StartedAtMs, to: s.CompletedAtMs, link: to, first: s.Index + 1, last: s.Index + 1,
			title: Line(s.Role, longestTitle) + ", " + render.Duration(max(0, s.CompletedAtMs-s.StartedAtMs)),
		})
		end = s.CompletedAtMs
	}
	return end
}

// marks adds the calls of tools that turns have made between two times.
func (l *lines) marks(ctx context.Context, lane *line, turns []protocol.Hash, from, to int64) {
	for _, h := range turns {
		if l.turns == 0 || l.text <= 0 {
			return
		}
		l.turns--
		turn, err := thread.ShownTurn(ctx, l.reader, h)
		if err != nil {
			continue
		}
		l.text -= len(turn.Content) + len(turn.Reasoning)
		if len(turn.ToolCalls) == 0 || turn.AtMs < from || turn.AtMs > to {
			continue
		}
		var names []string
		for _, c := range turn.ToolCalls[:min(len(turn.ToolCalls), 5)] {
			names = append(names, Line(c.Name, Longest))
		}
		lane.add(span{kind: barMark, from: turn.AtMs, to: turn.AtMs, title: "calls " + strings.Join(names, ", ")})
	}
}

// open adds what goes on, or waits, until now.
func (l *lines) open(ctx context.Context, last int64) {
	now, at := l.clock.UnixMilli(), l.now.At
	if f := l.now.Flight; f != nil && f.Failed == "" {
		lane, from := l.lane(f.Role), f.Started.UnixMilli()
		lane.wait(last, from, fmt.Sprintf("before step %d", f.Number))
		lane.add(span{kind: barBusy, from: from, to: now, title: "for " + render.Duration(max(0, now-from)) + " now", first: f.Number, last: f.Number})
		lane.steps++
		lane.worked += max(0, now-from)
		l.marks(ctx, lane, f.Turns, from, now)
		return
	}
	role := cmp.Or(deref(at.SuspendedRole), deref(at.CurrentRole))
	if at.Done || role == "" || at.Status == protocol.StatusCompleted || at.Status == protocol.StatusCancelled {
		return
	}
	if last == unknownTime && at.StartedAt != nil {
		last = *at.StartedAt
	}
	lane := l.lane(role)
	if len(l.now.Children) > 0 {
		lane.add(span{kind: barKids, from: last, to: now, title: "its children are at work"})
		l.started(ctx, lane, last)
		return
	}
	lane.wait(last, now, "and goes on waiting: "+string(at.Status))
}

// started adds the children that play the role that is next.
func (l *lines) started(ctx context.Context, lane *line, since int64) {
	stands, names := map[string]protocol.Status{}, map[string]string{}
	for _, c := range l.now.At.Children {
		stands[c.Thread], names[c.Thread] = c.Status, Line(c.Label, Longest)
	}
	for _, k := range l.now.Children {
		kid := laneIn(&lane.lanes, &lane.order, k.Key)
		kid.name = cmp.Or(names[k.Thread], kid.name)
		if l.kids == 0 {
			continue
		}
		l.kids--
		link := ""
		if l.now.Thread != nil {
			link = l.now.Thread(k.Thread)
		}
		end := l.child(ctx, kid, k.Head, link, "")
		if end == unknownTime {
			end = since
		}
		switch now := l.clock.UnixMilli(); {
		case k.Ended:
		case stands[k.Thread] == protocol.StatusRunning || stands[k.Thread] == protocol.StatusWaitingForChildren:
			kid.add(span{kind: barBusy, from: end, to: now, title: string(stands[k.Thread]), link: link})
		default:
			kid.wait(end, now, "and goes on waiting: "+string(stands[k.Thread]))
		}
	}
}

func deref(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func (l *line) add(s span) {
	s.to = max(s.from, s.to)
	l.spans = append(l.spans, s)
}

// wait adds the pause between two times, if there was one.
func (l *line) wait(from, to int64, what string) {
	if from == unknownTime || to-from < shortestWait {
		return
	}
	l.waited += to - from
	l.add(span{kind: barWait, from: from, to: to, title: "waited " + render.Duration(to-from) + " " + what})
}
