package view

import (
	"cmp"
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/sorting"
)

// Trace is the path of a thread through its workflow.
type Trace struct {
	Workflow protocol.Workflow
	Status   protocol.Status
	Moves    []diagram.Move              // edges taken, from $START
	Here     string                      // the thread's current node
	Totals   map[string]*protocol.Totals // cost by role
	// Changes holds the sums of file changes by role.
	Changes map[string]protocol.FileTotals
	// Children holds the most recent children by role.
	Children map[string][]played
}

// played is a child that plays or has played a role.
type played struct {
	protocol.ChildOutput
	TookMs int64 // duration of its steps; 0 means unknown
}

// TraceOf returns the path of a thread.
func TraceOf(ctx context.Context, e *engine.Engine, id string) (*Trace, error) {
	state, err := e.Reader.Show(ctx, id)
	if err != nil {
		return nil, err
	}
	t, err := thread.Open(ctx, e.Reader.Store, state.Head)
	if err != nil {
		return nil, err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return nil, err
	}
	trace := &Trace{Workflow: wf, Status: state.Status, Totals: map[string]*protocol.Totals{},
		Changes: map[string]protocol.FileTotals{}, Children: map[string][]played{}}
	if role := cmp.Or(state.CurrentRole, state.SuspendedRole); role != "" {
		trace.atWork(ctx, e, string(role), state.Children)
	}
	labels := func(s thread.Step) map[string]string { return e.Reader.Labels(ctx, wf, s) }
	if err := trace.read(ctx, t, state, e.Files().Totals(ctx, state.Head, worktree.MostTotals), labels); err != nil {
		return nil, err
	}
	return trace, nil
}

// Graph returns the workflow's graph with the path; note formats the cost of a role.
func (j *Trace) Graph(note func(protocol.Totals) string) diagram.Graph {
	t := diagram.Trace{Moves: j.Moves, Here: j.Here, Notes: map[string]string{}, Lanes: map[string][]diagram.Lane{},
		Busy: j.Status == protocol.StatusRunning || j.Status == protocol.StatusWaitingForChildren}
	for role, children := range j.Children {
		t.Lanes[role] = lanes(children)
	}
	for role, sum := range j.Totals {
		t.Notes[role] = note(*sum)
		if changed := j.Changes[role]; changed.Files > 0 {
			t.Notes[role] += " · " + Changes(changed)
		}
	}
	return diagram.Of(j.Workflow).Traced(t)
}

// read reads the chain.
func (j *Trace) read(ctx context.Context, t *thread.Thread, state protocol.StepOutput,
	changes map[protocol.Hash]protocol.FileTotals, labels func(thread.Step) map[string]string) error {
	var steps []thread.Step
	var statuses []string
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return err
		}
		out, err := t.Shown(ctx, s)
		if err != nil {
			return err
		}
		steps, statuses = append(steps, s), append(statuses, StatusOf(out.Value))
		if len(s.Children) > 0 && j.Children[s.Role] == nil {
			j.joined(s, labels(s))
		}
		if j.Totals[s.Role] == nil {
			j.Totals[s.Role] = &protocol.Totals{}
		}
		j.Totals[s.Role].Add(s.Step)
		done := changes[s.Hash]
		sum := j.Changes[s.Role]
		j.Changes[s.Role] = protocol.FileTotals{Files: sum.Files + done.Files, Added: sum.Added + done.Added,
			Removed: sum.Removed + done.Removed}
	}
	at, status := protocol.StartNode, ""
	for i, s := range slices.Backward(steps) {
		j.move(at, s.Role, status)
		at, status = s.Role, statuses[i]
	}
	j.Here = j.currentNode(state, at, status)
	if j.Here != at {
		j.move(at, j.Here, status)
	}
	return nil
}

// currentNode returns the current node. If a thread waits for a person without an edge to $SUSPEND, that is the
// role that a resume would run.
func (j *Trace) currentNode(state protocol.StepOutput, last, status string) string {
	switch {
	case state.Status == protocol.StatusCompleted:
		return protocol.EndNode
	case state.Status == protocol.StatusFailed:
		return protocol.FailNode
	case state.Status == protocol.StatusSuspended && j.target(last, status) == protocol.SuspendNode:
		return protocol.SuspendNode
	case state.SuspendedRole != "":
		return string(state.SuspendedRole)
	case state.CurrentRole != "":
		return string(state.CurrentRole)
	}
	return last
}

// move adds the edges between two nodes. It inserts $SUSPEND if a role waited for a person and ran again, and
// $END and $START if an ended thread was restarted.
func (j *Trace) move(from, to, status string) {
	target := j.target(from, status)
	switch {
	case target == "" || target == to || status == protocol.SuspendNode:
	case target == protocol.SuspendNode:
		j.Moves = append(j.Moves, diagram.Move{From: from, To: target, Status: status})
		return
	case target == protocol.EndNode, target == protocol.FailNode:
		j.Moves = append(j.Moves, diagram.Move{From: from, To: target, Status: status})
		from, status = protocol.StartNode, ""
	}
	if from == to && status == protocol.SuspendNode {
		return // the role suspended the thread itself, without an edge
	}
	j.Moves = append(j.Moves, diagram.Move{From: from, To: to, Status: status})
}

// target returns the target of a status, or "" if it depends on conditions.
func (j *Trace) target(from, status string) string {
	for _, way := range flow.Ways(j.Workflow, from) {
		if way.Number == 0 && (way.Status == status || way.Status == protocol.DefaultStatus) {
			return way.Role
		}
	}
	return ""
}

// Path returns the path as a list of nodes.
func (j *Trace) Path() []string {
	path := []string{protocol.StartNode}
	for _, m := range j.Moves {
		if m.From != path[len(path)-1] {
			path = append(path, m.From)
		}
		path = append(path, m.To)
	}
	return path
}

// Roles returns the cost of each role that has made a step, in the order of the graph.
func (j *Trace) Roles() []protocol.RoleTotals {
	roles := []protocol.RoleTotals{}
	for _, role := range flow.Roles(j.Workflow) {
		if sum := j.Totals[role]; sum != nil {
			roles = append(roles, protocol.RoleTotals{Role: role, Totals: *sum})
		}
	}
	return roles
}

// joined adds the children that a step has joined.
func (j *Trace) joined(s thread.Step, labels map[string]string) {
	all := make([]played, len(s.Children))
	for i, c := range s.Children {
		all[i] = played{ChildOutput: protocol.ChildOutput{Key: c.Key, Status: c.Status, Label: labels[c.Key]}}
		if c.Usage != nil {
			all[i].TookMs = c.Usage.DurationMs
		}
	}
	j.Children[s.Role] = all
}

// atWork adds the children of the next role. It reads the durations of a limited number of them.
func (j *Trace) atWork(ctx context.Context, e *engine.Engine, role string, children []protocol.ChildOutput) {
	const most = 500
	for i, c := range children {
		p := played{ChildOutput: c}
		if i < most && c.Status != protocol.StatusIdle {
			if head, err := e.Reader.Head(ctx, c.Thread); err == nil {
				if sum, err := e.Reader.Totals(ctx, c.Thread, head); err == nil {
					p.TookMs = sum.DurationMs
				}
			}
		}
		j.Children[role] = append(j.Children[role], p)
	}
}

// lanes returns one lane per child if there are few, else one per status with the number of children.
func lanes(all []played) []diagram.Lane {
	const few = 8
	sums := map[protocol.Status]*diagram.Lane{}
	took := map[protocol.Status]int64{}
	var lanes []diagram.Lane
	for _, c := range all {
		took[c.Status] += c.TookMs
		if len(all) <= few {
			lanes = append(lanes, diagram.Lane{Name: cmp.Or(c.Label, c.Key), Count: 1, Status: c.Status,
				Note: tookText(c.TookMs)})
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
		sorting.Func(lanes, func(a, b diagram.Lane) int { return cmp.Compare(urgency(a.Status), urgency(b.Status)) })
	}
	return lanes
}

func tookText(ms int64) string {
	if ms == 0 {
		return ""
	}
	return render.Duration(ms)
}

// urgency ranks a child's status by how urgently a person should see it, lowest rank first.
func urgency(s protocol.Status) int {
	order := []protocol.Status{
		protocol.StatusSuspended, protocol.StatusError, protocol.StatusCorrupt, protocol.StatusFailed, protocol.StatusRunning,
		protocol.StatusWaitingForChildren, protocol.StatusRateLimited,
		protocol.StatusIdle, protocol.StatusCancelled, protocol.StatusCompleted,
	}
	if at := slices.Index(order, s); at >= 0 {
		return at
	}
	return len(order)
}

// ByUrgency returns children sorted by urgency.
func ByUrgency(all []protocol.ChildOutput) []protocol.ChildOutput {
	return slices.SortedStableFunc(slices.Values(all),
		func(a, b protocol.ChildOutput) int { return cmp.Compare(urgency(a.Status), urgency(b.Status)) })
}
