package htmlpage

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// Timeline shows when the steps of a thread were made, with one lane per role on a common scale.
type Timeline struct {
	From, To    When
	First, Last int // step numbers; 0 if there are no steps
	Lanes       []*lane
	More        int // number of lanes not displayed
	Shortened   bool
}

// lane shows the work of one role or one child.
type lane struct {
	Name, Facts, Link string
	Bars              []bar
	Children, Folded  []*lane // the role's children: the first few, and the others
	More              int     // number of children not displayed

	steps          int
	worked, waited int64 // milliseconds
	below          lanes // of children
	read, problem  bool  // for a child: its steps were read; some are unreadable
}

// lanes are lanes under construction, in their order.
type lanes struct {
	named map[string]*lane
	order []*lane
}

// bar is a bar in a lane. X and W are its start and width, in percent of the lane's width.
type bar struct {
	Kind, X, W, Title, Link string

	from, to    int64 // Unix milliseconds
	first, last int   // range of steps drawn as one bar
}

// Kinds of bars. A mark is a tool call and has no width.
const (
	barWork     = "work"
	barBusy     = "busy" // running until now
	barChildren = "kids" // children are working
	barWait     = "wait"
	barMark     = "mark"
)

// Limits of a timeline.
const (
	mostLanes        = 40       // roles
	mostChildren     = 200      // children to read
	mostChildSteps   = 50       // steps per child
	childrenUnfolded = 10       // children of a role displayed without folding
	mostTurns        = 400      // turns searched for tool calls
	mostTurnText     = 4 << 20  // bytes of these turns
	shortestWait     = 1000     // milliseconds; shorter pauses are not shown
	narrowest        = 0.4      // percent of the width
	pauseShare       = 0.3      // width of all long pauses together, as a share of the working time
	leastPause       = 0.005    // minimum width of each, as a share of the working time
	unknownTime      = int64(0) // for steps by the original uwf, which have no times
)

// Now describes the current activity of a thread. The zero value means none.
type Now struct {
	At       protocol.ThreadShow
	Flight   *status.Flight
	Children []status.StartedChild
	Joined   func(by thread.Step, child protocol.ChildEnded) Child // returns a child with its page; nil if there are no pages
	Thread   func(id string) string                                // returns the page of a thread; nil if there are no pages
}

// TimelineOf returns the timeline of a thread's steps, oldest first, and of its current activity. It omits
// unreadable turns and children, which the steps report.
func TimelineOf(ctx context.Context, e *engine.Engine, steps []thread.Step, now Now) *Timeline {
	l := &builder{reader: e.Reader.Store, now: e.Reader.Env.Now(), current: now,
		turns: mostTurns, text: mostTurnText, children: mostChildren}
	childrenFrom, children := len(steps), 0 // the first step whose children are read
	for i := len(steps) - 1; i >= 0 && children < mostChildren; i-- {
		childrenFrom, children = i, children+len(steps[i].Children)
	}
	for i, s := range steps {
		prev := unknownTime
		if i > 0 {
			prev = steps[i-1].CompletedAtMs
		}
		l.step(ctx, s, prev, i >= childrenFrom)
	}
	for _, s := range slices.Backward(steps) { // newest first, since there is a limit
		if l.turns > 0 && l.text > 0 && len(s.Children) == 0 {
			if detail, err := thread.ShownDetail(ctx, e.Reader.Store, s.Detail); err == nil {
				l.marks(ctx, l.lane(s.Role), detail.Turns, s.StartedAtMs, s.CompletedAtMs)
			}
		}
	}
	last := unknownTime
	if len(steps) > 0 {
		last = steps[len(steps)-1].CompletedAtMs
	}
	l.ongoing(ctx, last)
	t := l.timeline()
	if t != nil && len(steps) > 0 {
		t.First, t.Last = steps[0].Index+1, steps[len(steps)-1].Index+1
	}
	return t
}

// builder is a timeline under construction.
type builder struct {
	lanes
	reader                cas.Reader
	now                   time.Time
	current               Now // activity
	turns, text, children int // how many more to read
}

// lane returns the lane of a role or child.
func (l *lanes) lane(name string) *lane {
	if l.named == nil {
		l.named = map[string]*lane{}
	}
	if l.named[name] == nil {
		l.named[name] = &lane{Name: Line(name, Longest)}
		l.order = append(l.order, l.named[name])
	}
	return l.named[name]
}

// step adds a finished step, the pause since prev (the end of the one before), and a lane for each of its children.
func (l *builder) step(ctx context.Context, s thread.Step, prev int64, readChildren bool) {
	lane, from, kind := l.lane(s.Role), s.StartedAtMs, barWork
	lane.steps++
	if len(s.Children) > 0 {
		kind = barChildren
		if prev != unknownTime {
			from = min(from, prev)
		}
	}
	lane.worked += max(0, s.CompletedAtMs-from)
	lane.wait(prev, from, fmt.Sprintf("before step %d", s.Index+1))
	took := render.Duration(max(0, s.CompletedAtMs-from))
	lane.add(bar{Kind: kind, from: from, to: s.CompletedAtMs, Title: took, Link: fmt.Sprintf("#s%d", s.Index+1),
		first: s.Index + 1, last: s.Index + 1})
	for i, c := range s.Children {
		child := lane.below.lane(c.Key)
		if !readChildren || l.children == 0 {
			continue
		}
		l.children--
		link, within := "", fmt.Sprintf("#s%d-%d-s", s.Index+1, i+1)
		if l.current.Joined != nil {
			joined := l.current.Joined(s, c)
			child.Name, link, within = cmp.Or(joined.Name, child.Name), joined.Link, ""
		}
		l.child(ctx, child, c.Head, link, within)
	}
}

// child adds the steps of a child's chain to its lane, and returns the end of the last one. The bars link to the
// child's page, or to the steps on this page if within, the beginning of their element IDs, isn't empty.
func (l *builder) child(ctx context.Context, lane *lane, head protocol.Hash, link, within string) (end int64) {
	lane.read, lane.Link = true, cmp.Or(link, lane.Link)
	t, err := thread.Open(ctx, l.reader, head)
	if err != nil {
		lane.problem = true
		return unknownTime
	}
	steps, _, err := chainOf(ctx, t, mostChildSteps)
	lane.problem = lane.problem || err != nil
	for _, s := range steps {
		lane.wait(end, s.StartedAtMs, fmt.Sprintf("before its step %d", s.Index+1))
		lane.steps++
		lane.worked += max(0, s.CompletedAtMs-s.StartedAtMs)
		to := link
		if within != "" {
			to = within + fmt.Sprint(s.Index+1)
		}
		lane.add(bar{
			Kind: barWork, from: s.StartedAtMs, to: s.CompletedAtMs, Link: to, first: s.Index + 1, last: s.Index + 1,
			Title: Line(s.Role, Longest) + ", " + render.Duration(max(0, s.CompletedAtMs-s.StartedAtMs)),
		})
		end = s.CompletedAtMs
	}
	return end
}

// marks adds the tool calls in turns between two times.
func (l *builder) marks(ctx context.Context, lane *lane, turns []protocol.Hash, from, to int64) {
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
		lane.add(bar{Kind: barMark, from: turn.AtMs, to: turn.AtMs, Title: "calls " + strings.Join(names, ", ")})
	}
}

// ongoing adds the current work or wait, up to now. last is the end of the last step.
func (l *builder) ongoing(ctx context.Context, last int64) {
	now, at := l.now.UnixMilli(), l.current.At
	if f := l.current.Flight; f != nil && f.Failed == "" {
		lane, from := l.lane(f.Role), f.Started.UnixMilli()
		lane.wait(last, from, fmt.Sprintf("before step %d", f.Number))
		lane.add(bar{Kind: barBusy, from: from, to: now, Title: "for " + render.Duration(max(0, now-from)) + " now",
			first: f.Number, last: f.Number})
		lane.steps++
		lane.worked += max(0, now-from)
		l.marks(ctx, lane, f.Turns, from, now)
		return
	}
	role := string(cmp.Or(at.SuspendedRole, at.CurrentRole))
	if at.Done || role == "" || at.Status.AtEnd() || at.Status == protocol.StatusCancelled {
		return
	}
	if last == unknownTime && at.StartedAt != nil {
		last = *at.StartedAt
	}
	lane := l.lane(role)
	if len(l.current.Children) > 0 {
		lane.add(bar{Kind: barChildren, from: last, to: now, Title: "its children are at work"})
		l.startedChildren(ctx, lane, last)
		return
	}
	lane.wait(last, now, "and still waiting: "+string(at.Status))
}

// startedChildren adds the children of the next role, whose work began at since.
func (l *builder) startedChildren(ctx context.Context, lane *lane, since int64) {
	statuses, names := map[string]protocol.Status{}, map[string]string{}
	for _, c := range l.current.At.Children {
		statuses[c.Thread], names[c.Thread] = c.Status, Line(c.Label, Longest)
	}
	for _, k := range l.current.Children {
		child := lane.below.lane(k.Key)
		child.Name = cmp.Or(names[k.Thread], child.Name)
		if l.children == 0 {
			continue
		}
		l.children--
		link := ""
		if l.current.Thread != nil {
			link = l.current.Thread(k.Thread)
		}
		end := l.child(ctx, child, k.Head, link, "")
		if end == unknownTime {
			end = since
		}
		switch now := l.now.UnixMilli(); {
		case k.Ended:
		case statuses[k.Thread] == protocol.StatusRunning || statuses[k.Thread] == protocol.StatusWaitingForChildren:
			child.add(bar{Kind: barBusy, from: end, to: now, Title: string(statuses[k.Thread]), Link: link})
		default:
			child.wait(end, now, "and still waiting: "+string(statuses[k.Thread]))
		}
	}
}

func (l *lane) add(b bar) {
	b.to = max(b.from, b.to)
	l.Bars = append(l.Bars, b)
}

// wait adds the pause between two times if it is long enough.
func (l *lane) wait(from, to int64, what string) {
	if from == unknownTime || to-from < shortestWait {
		return
	}
	l.waited += to - from
	l.add(bar{Kind: barWait, from: from, to: to, Title: "waited " + render.Duration(to-from) + " " + what})
}

// scale maps times to positions. Working time is drawn to scale, but long pauses are shortened, because
// otherwise a night would hide a day's work.
type scale struct {
	times     []int64
	places    []float64 // percent
	shortened bool
}

// scaleOf returns the scale for all bars. An interval counts as work if at least one lane works in it.
func scaleOf(bars []bar) scale {
	work := slices.DeleteFunc(slices.Clone(bars), func(b bar) bool { return b.Kind == barWait || b.Kind == barMark })
	slices.SortFunc(work, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	var sc scale
	var busy []bool // whether the interval before each time is work
	point := func(at int64, isWork bool) {
		if n := len(sc.times); n == 0 || at > sc.times[n-1] {
			sc.times, busy = append(sc.times, at), append(busy, isWork)
		}
	}
	first, last := bars[0].from, bars[0].to
	for _, b := range bars {
		first, last = min(first, b.from), max(last, b.to)
	}
	point(first, false)
	for _, s := range work {
		point(s.from, false)
		point(s.to, true)
	}
	point(last, false)

	worked, pauses := 0.0, 0
	for i := range sc.times[1:] {
		if length := float64(sc.times[i+1]) - float64(sc.times[i]); busy[i+1] {
			worked += length
		} else {
			pauses++
		}
	}
	longest := max(worked*pauseShare/float64(max(pauses, 1)), worked*leastPause, 1)
	sc.places = make([]float64, len(sc.times))
	for i := range sc.times[1:] {
		length := float64(sc.times[i+1]) - float64(sc.times[i])
		if !busy[i+1] && length > longest && worked > 0 {
			length, sc.shortened = longest, true
		}
		sc.places[i+1] = sc.places[i] + length
	}
	whole := max(sc.places[len(sc.places)-1], 1)
	for i := range sc.places {
		sc.places[i] *= 100 / whole
	}
	return sc
}

func (sc scale) place(at int64) float64 {
	i, found := slices.BinarySearch(sc.times, at)
	switch {
	case found:
		return sc.places[i]
	case i == 0:
		return 0
	case i == len(sc.times):
		return sc.places[i-1]
	}
	share := (float64(at) - float64(sc.times[i-1])) / (float64(sc.times[i]) - float64(sc.times[i-1]))
	return sc.places[i-1] + share*(sc.places[i]-sc.places[i-1])
}

// timeline returns the finished timeline with the positions of all bars, or nil if it is empty.
func (l *builder) timeline() *Timeline {
	var all []bar
	for i, lane := range l.order {
		for _, lane := range slices.Concat(l.order[i:i+1], lane.below.order) {
			lane.Bars = slices.DeleteFunc(lane.Bars, func(b bar) bool { return b.from == unknownTime })
			all = append(all, lane.Bars...)
		}
	}
	if len(all) == 0 {
		return nil
	}
	sc := scaleOf(all)
	t := &Timeline{
		From: WhenOf(&sc.times[0], l.now), To: WhenOf(&sc.times[len(sc.times)-1], l.now), Shortened: sc.shortened,
		More: max(0, len(l.order)-mostLanes),
	}
	t.Lanes = l.order[:len(l.order)-t.More]
	for _, lane := range t.Lanes {
		lane.draw(sc)
		for _, child := range lane.below.order {
			child.draw(sc)
			switch {
			case !child.read:
				lane.More++
			case len(lane.below.order) <= childrenUnfolded:
				lane.Children = append(lane.Children, child)
			default:
				lane.Folded = append(lane.Folded, child)
			}
		}
	}
	return t
}

// draw sets the positions of the bars. It merges steps too narrow to tell apart, and omits invisible pauses.
func (l *lane) draw(sc scale) {
	var bars, marks []bar
	begin, end, mark := 0.0, 0.0, -1.0 // of the last bar and the last mark
	slices.SortStableFunc(l.Bars, func(a, b bar) int { return cmp.Compare(a.from, b.from) })
	for _, b := range l.Bars {
		x, to := sc.place(b.from), sc.place(b.to)
		var last *bar
		if len(bars) > 0 {
			last = &bars[len(bars)-1]
		}
		switch {
		case b.Kind == barMark && x <= mark+narrowest/2, b.Kind == barWait && to-x < narrowest/2:
		case b.Kind == barMark:
			b.X, mark = fmt.Sprintf("%.2f", x), x
			marks = append(marks, b)
		case last != nil && last.Kind == b.Kind && last.first > 0 && b.first > 0 &&
			end-begin < 1.01*narrowest && to < end+narrowest:
			last.last, last.Title = b.last, fmt.Sprintf("steps %d to %d", last.first, b.last)
		default:
			begin = min(x, 100-narrowest)
			end = max(to, begin+narrowest)
			if b.X, b.W = fmt.Sprintf("%.2f", begin), fmt.Sprintf("%.2f", end-begin); b.first > 0 {
				b.Title = fmt.Sprintf("step %d: %s", b.first, b.Title)
			}
			bars = append(bars, b)
		}
	}
	l.Bars, l.Facts = append(bars, marks...), l.facts()
}

// facts describes the bars in words.
func (l *lane) facts() string {
	text := render.Count(l.steps, "step") + " · " + render.Duration(l.worked)
	if l.steps == 0 {
		text = "not yet"
	}
	if l.waited > 0 {
		text += " · waited " + render.Duration(l.waited)
	}
	if l.problem {
		text += " · not all of it can be read"
	}
	return text
}

// Plot shows the cost of steps over time, with a column per day that stacks one color per group.
type Plot struct {
	What, By, Of string // the measure, the kind of its groups, and the time that a column covers
	Most         string // the highest column
	First, Last  string
	Groups       []plotGroup
	Bars         []plotBar
	Words        string // description for screen readers
}

// plotGroup is a group with its color.
type plotGroup struct{ Name, Sum, Class string }

// plotBar is the part of a column with one color. X and W are in percent, Y and H in pixels.
type plotBar struct{ Class, X, W, Y, H, Title string }

// Limits and height of a plot.
const (
	plotGroups  = 6 // further groups are merged
	plotColumns = 120
	plotHeight  = 180.0
)

// others is the name of the merged groups.
const others = "others"

// PlotOf plots sums that are grouped by day and by another name ("" for no other); it returns nil if there is
// nothing to plot. It plots the cost if any is known, else tokens, else time. The columns extend to now.
func PlotOf(s protocol.Stats, by string, now time.Time) *Plot {
	texts := []func(float64) string{protocol.Dollars, func(v float64) string { return view.Thousands(int64(v)) },
		func(v float64) string { return render.Duration(int64(v)) }}
	p, sums, measure := &Plot{By: by}, map[string]float64{}, 0 // by group
	value := func(r protocol.StatsRow) float64 { return protocol.AmountOf(r.Totals).Figures()[measure] }
	known := func(r protocol.StatsRow) bool { return value(r) > 0 }
	for i, what := range []string{"Cost", "Tokens", "Time"} {
		if p.What, measure = what, i; slices.ContainsFunc(s.Rows, known) {
			break
		}
	}
	first, last := now.Format(time.DateOnly), now.Format(time.DateOnly)
	for _, r := range s.Rows {
		if value(r) > 0 {
			sums[r.Of[by]] += value(r)
			first, last = min(first, r.Of["day"]), max(last, r.Of["day"])
		}
	}
	if len(sums) == 0 {
		return nil
	}
	text := texts[measure]
	class := p.group(sums, text)
	width, names := columnsOf(first, last)
	p.Of = map[int]string{len("2006-01-02"): "day", len("2006-01"): "month", len("2006"): "year", 0: "time"}[width]
	heights, whole := map[string]map[string]float64{}, map[string]float64{} // by column, and by class
	for _, r := range s.Rows {
		column := r.Of["day"][:min(width, len(r.Of["day"]))]
		if heights[column] == nil {
			heights[column] = map[string]float64{}
		}
		heights[column][class[r.Of[by]]] += value(r)
		whole[column] += value(r)
	}
	most := slices.Max(slices.Collect(maps.Values(whole)))
	p.Most, p.First, p.Last = text(most), names[0], names[len(names)-1]
	p.draw(names, heights, most, text)
	p.Words = fmt.Sprintf("%s for each %s from %s to %s, at most %s. The table has all numbers.", p.What, p.Of, p.First,
		p.Last, p.Most)
	return p
}

// group assigns colors to the groups with the largest sums, and returns the class of each group.
func (p *Plot) group(sums map[string]float64, text func(float64) string) map[string]string {
	names := slices.SortedFunc(maps.Keys(sums), func(a, b string) int {
		return cmp.Or(cmp.Compare(sums[b], sums[a]), strings.Compare(a, b))
	})
	class := map[string]string{}
	rest := 0.0
	for i, name := range names {
		if i >= plotGroups && len(names) > plotGroups+1 {
			class[name] = fmt.Sprintf("g%d", plotGroups)
			rest += sums[name]
			continue
		}
		class[name] = fmt.Sprintf("g%d", i)
		shown := cmp.Or(Line(name, Longest), "(unknown)")
		if p.By == "" {
			shown = "all"
		}
		p.Groups = append(p.Groups, plotGroup{Name: shown, Sum: text(sums[name]), Class: class[name]})
	}
	if rest > 0 {
		p.Groups = append(p.Groups, plotGroup{Name: others, Sum: text(rest), Class: fmt.Sprintf("g%d", plotGroups)})
	}
	return class
}

// columnsOf returns the names of the columns between two days, and their length, as each is the start of a date:
// days, else months, else years. If even those are too many, it returns the first ones.
func columnsOf(first, last string) (width int, names []string) {
	from, err := time.Parse(time.DateOnly, first)
	to, wrong := time.Parse(time.DateOnly, last)
	if err != nil || wrong != nil { // a year with more than four digits
		return 0, []string{""}
	}
	for _, width = range []int{len("2006-01-02"), len("2006-01"), len("2006")} {
		names = nil
		for at := from; !at.After(to) && len(names) <= plotColumns; at = at.AddDate(0, 0, 1) {
			if name := at.Format(time.DateOnly)[:width]; len(names) == 0 || names[len(names)-1] != name {
				names = append(names, name)
			}
		}
		if len(names) <= plotColumns {
			break
		}
	}
	return width, names
}

// draw computes the positions of the bars.
func (p *Plot) draw(names []string, heights map[string]map[string]float64, most float64, text func(float64) string) {
	width := 100 / float64(len(names))
	gap := min(width*0.2, 1)
	for i, name := range names {
		y := plotHeight
		for _, g := range p.Groups {
			v := heights[name][g.Class]
			if v <= 0 {
				continue
			}
			h := max(v*plotHeight/most, 1)
			y -= h
			p.Bars = append(p.Bars, plotBar{
				Class: g.Class, X: fmt.Sprintf("%.2f", float64(i)*width+gap/2), W: fmt.Sprintf("%.2f", min(width-gap, 8)),
				Y: fmt.Sprintf("%.1f", max(y, 0)), H: fmt.Sprintf("%.1f", h), Title: name + ": " + g.Name + " " + text(v),
			})
		}
	}
}
