package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

// joined notes the children whose results a step has joined.
func (j *Trace) joined(s thread.Step, labels map[string]string) {
	all := make([]Played, len(s.Children))
	for i, c := range s.Children {
		all[i] = Played{ChildOutput: protocol.ChildOutput{Key: c.Key, Status: c.Status, Label: labels[c.Key]}}
		if c.Usage != nil {
			all[i].TookMs = c.Usage.DurationMs
		}
	}
	j.Children[s.Role] = all
}

// atWork notes the children of the role that is next. How long they have worked is said
// of as many as can be read in a moment.
func (j *Trace) atWork(ctx context.Context, e *engine.Engine, role string, children []protocol.ChildOutput) {
	const most = 500
	for i, c := range children {
		p := Played{ChildOutput: c}
		if i < most && c.Status != protocol.StatusIdle {
			if head, err := e.Head(ctx, c.Thread); err == nil {
				if sum, err := e.Totals(ctx, c.Thread, head); err == nil {
					p.TookMs = sum.DurationMs
				}
			}
		}
		j.Children[role] = append(j.Children[role], p)
	}
}

// lanes are children one by one if they are few, else counted by where they stand.
func lanes(all []Played) []diagram.Lane {
	const few = 8
	sums := map[protocol.Status]*diagram.Lane{}
	took := map[protocol.Status]int64{}
	var lanes []diagram.Lane
	for _, c := range all {
		took[c.Status] += c.TookMs
		if len(all) <= few {
			lanes = append(lanes, diagram.Lane{Name: cmp.Or(c.Label, c.Key), Count: 1, Status: c.Status, Note: tookText(c.TookMs)})
		} else if sum := sums[c.Status]; sum != nil {
			sum.Count++
		} else {
			sums[c.Status] = &diagram.Lane{Count: 1, Status: c.Status}
		}
	}
	for status, sum := range sums {
		sum.Note = tookText(took[status])
		lanes = append(lanes, *sum)
	}
	if len(all) > few {
		slices.SortFunc(lanes, func(a, b diagram.Lane) int { return cmp.Compare(Urgency(a.Status), Urgency(b.Status)) })
	}
	return lanes
}

func tookText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return render.Duration(ms)
}

// Urgency is how much a person cares about where a child stands: the least first.
func Urgency(s protocol.Status) int {
	order := []protocol.Status{
		protocol.StatusSuspended, protocol.StatusError, protocol.StatusCorrupt, protocol.StatusRunning, protocol.StatusWaitingForChildren, protocol.StatusRateLimited,
		protocol.StatusIdle, protocol.StatusCancelled, protocol.StatusCompleted,
	}
	if at := slices.Index(order, s); at >= 0 {
		return at
	}
	return len(order)
}

// ByUrgency are children, those first that a person cares about.
func ByUrgency(all []protocol.ChildOutput) []protocol.ChildOutput {
	return slices.SortedStableFunc(slices.Values(all), func(a, b protocol.ChildOutput) int { return cmp.Compare(Urgency(a.Status), Urgency(b.Status)) })
}
