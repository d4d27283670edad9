package htmlpage

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/util/render"
)

// scale leads from times to places. Time at work is drawn as long as it was; a long pause
// is drawn shorter, or a night would hide the work of a day.
type scale struct {
	times     []int64
	places    []float64 // percent
	shortened bool
}

// scaleOf is the scale of everything that was done.
func scaleOf(spans []span) scale {
	work := slices.DeleteFunc(slices.Clone(spans), func(s span) bool { return s.kind == barWait || s.kind == barMark })
	slices.SortFunc(work, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	var sc scale
	var busy []bool // whether the piece up to a time is one of work
	point := func(at int64, isWork bool) {
		if n := len(sc.times); n == 0 || at > sc.times[n-1] {
			sc.times, busy = append(sc.times, at), append(busy, isWork)
		}
	}
	first, last := spans[0].from, spans[0].to
	for _, s := range spans {
		first, last = min(first, s.from), max(last, s.to)
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

// placed is the time line as it is drawn; nil: there is nothing to draw.
func (l *lines) placed() *Timeline {
	var all []span
	for _, lane := range l.order {
		all = append(all, lane.spans...)
		for _, kid := range lane.order {
			all = append(all, kid.spans...)
		}
	}
	all = slices.DeleteFunc(all, func(s span) bool { return s.from == unknownTime })
	if len(all) == 0 {
		return nil
	}
	sc := scaleOf(all)
	t := &Timeline{
		From: WhenOf(&sc.times[0], l.clock), To: WhenOf(&sc.times[len(sc.times)-1], l.clock), Shortened: sc.shortened,
		More: max(0, len(l.order)-mostLanes),
	}
	for _, lane := range l.order[:len(l.order)-t.More] {
		drawn := lane.drawn(sc)
		for _, kid := range lane.order {
			switch {
			case !kid.read:
				drawn.More++
			case len(drawn.Children) < kidsUnfolded && len(lane.order) <= kidsUnfolded:
				drawn.Children = append(drawn.Children, kid.drawn(sc))
			default:
				drawn.Folded = append(drawn.Folded, kid.drawn(sc))
			}
		}
		t.Lanes = append(t.Lanes, drawn)
	}
	return t
}

// drawn is a lane in its places. Bars that would lie on each other are one.
func (l *line) drawn(sc scale) *Lane {
	lane := &Lane{Name: l.name, Link: l.link, Facts: l.facts()}
	var marks []Bar
	var last span
	begin, end, mark := 0.0, 0.0, -1.0 // of the last bar, and of the last mark
	slices.SortStableFunc(l.spans, func(a, b span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range l.spans {
		if s.from == unknownTime {
			continue
		}
		x, to := sc.place(s.from), sc.place(s.to)
		if s.kind == barMark {
			if x > mark+narrowest/2 {
				marks, mark = append(marks, Bar{Kind: s.kind, X: fmt.Sprintf("%.2f", x), Title: s.title}), x
			}
			continue
		}
		if s.kind == barWait && to-x < narrowest/2 {
			continue
		}
		if last.kind == s.kind && last.first > 0 && s.first > 0 && end-begin < 1.01*narrowest && to < end+narrowest {
			last.last = s.last
			lane.Bars[len(lane.Bars)-1].Title = fmt.Sprintf("steps %d to %d", last.first, last.last)
			continue
		}
		last, begin = s, min(x, 100-narrowest)
		end = max(to, begin+narrowest)
		title := s.title
		if s.first > 0 {
			title = fmt.Sprintf("step %d: %s", s.first, s.title)
		}
		lane.Bars = append(lane.Bars, Bar{Kind: s.kind, X: fmt.Sprintf("%.2f", begin), W: fmt.Sprintf("%.2f", end-begin), Title: title, Link: s.link})
	}
	lane.Bars = append(lane.Bars, marks...)
	return lane
}

// facts says in words what the bars show.
func (l *line) facts() string {
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
