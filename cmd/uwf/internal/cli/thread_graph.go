package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/moderator/flow"
	"github.com/united-workforce/uwf/protocol"
)

// threadGraphOutput answers thread graph in JSON: the graph with what the run has
// made of it, and the way in words.
type threadGraphOutput struct {
	Thread string          `json:"thread"`
	Status protocol.Status `json:"status"`
	Path   []string        `json:"path"`  // the nodes, from $START
	Roles  []roleTotals    `json:"roles"` // in the order of the graph
	diagram.Graph
}

// roleTotals is what a role has cost.
type roleTotals struct {
	Role string `json:"role"`
	protocol.Totals
}

func (a *app) threadGraphCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "graph", ArgsUsage: "<thread>", Usage: "draw the workflow's graph with the path that a thread took",
		Description: "×2 on an edge means that it was taken twice, and ◀ marks where the thread stands. A role that has\n" +
			"had its turn shows how often, and what it cost. In the pictures, what was not reached is pale.\n\n" +
			"   uwf thread graph @ --format svg > run.svg",
		Flags: []ucli.Flag{formatFlag(graphFormats(), "text")},
	}, a.threadGraph)
}

func (a *app) threadGraph(ctx context.Context, c *ucli.Context) error {
	format, err := a.ownFormat(c, graphFormats())
	if err != nil {
		return err
	}
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	state, err := e.Show(ctx, id)
	if err != nil {
		return err
	}
	t, err := a.openThread(ctx, state.Head)
	if err != nil {
		return err
	}
	wf, err := t.Workflow(ctx)
	if err != nil {
		return err
	}
	run := journey{workflow: wf, totals: map[string]*protocol.Totals{}}
	if err := run.read(ctx, t, state); err != nil {
		return err
	}
	g := diagram.Of(wf).Traced(run.trace())
	if format == "json" || format == "yaml" {
		return a.print(threadGraphOutput{Thread: id, Status: state.Status, Path: run.path(), Roles: run.roles(), Graph: g}, nil)
	}
	out, err := draw(g, format, a.width())
	if err != nil {
		return err
	}
	_, err = io.WriteString(a.env.Stdout, out)
	return err
}

// journey is the way of a thread through its workflow.
type journey struct {
	workflow protocol.Workflow
	moves    []diagram.Move
	here     string
	totals   map[string]*protocol.Totals // by role
}

// read walks the chain.
func (j *journey) read(ctx context.Context, t *thread.Thread, state protocol.StepOutput) error {
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
		steps, statuses = append(steps, s), append(statuses, statusOf(out.Value))
		if j.totals[s.Role] == nil {
			j.totals[s.Role] = &protocol.Totals{}
		}
		j.totals[s.Role].Add(s.Step)
	}
	at, status := protocol.StartNode, ""
	for i, s := range slices.Backward(steps) {
		j.move(at, s.Role, status)
		at, status = s.Role, statuses[i]
	}
	j.here = j.stands(state, at, status)
	if j.here != at {
		j.move(at, j.here, status)
	}
	return nil
}

// stands is the node that a thread has come to. One that waits for a person
// without being led to $SUSPEND stands at the role that resuming runs.
func (j *journey) stands(state protocol.StepOutput, last, status string) string {
	switch {
	case state.Status == protocol.StatusCompleted:
		return protocol.EndNode
	case state.Status == protocol.StatusSuspended && j.target(last, status) == protocol.SuspendNode:
		return protocol.SuspendNode
	case state.SuspendedRole != nil:
		return *state.SuspendedRole
	case state.CurrentRole != nil:
		return *state.CurrentRole
	}
	return last
}

// move adds the edges between two nodes. Between a role that waited for a person
// and the same role again lies $SUSPEND; between the end and a new beginning lie
// $END and $START.
func (j *journey) move(from, to, status string) {
	target := j.target(from, status)
	switch {
	case target == "" || target == to || status == protocol.SuspendNode:
	case target == protocol.SuspendNode:
		j.moves = append(j.moves, diagram.Move{From: from, To: target, Status: status})
		return
	case target == protocol.EndNode:
		j.moves = append(j.moves, diagram.Move{From: from, To: target, Status: status})
		from, status = protocol.StartNode, ""
	}
	if from == to && status == protocol.SuspendNode {
		return // it asked a person by itself: no edge was taken
	}
	j.moves = append(j.moves, diagram.Move{From: from, To: to, Status: status})
}

// target is where a status leads, "" if conditions decide.
func (j *journey) target(from, status string) string {
	for _, way := range flow.Ways(j.workflow, from) {
		if way.Number == 0 && (way.Status == status || way.Status == protocol.DefaultStatus) {
			return way.Role
		}
	}
	return ""
}

func (j *journey) trace() diagram.Trace {
	t := diagram.Trace{Moves: j.moves, Here: j.here, Notes: map[string]string{}}
	for role, sum := range j.totals {
		t.Notes[role] = note(*sum)
	}
	return t
}

// note says what a role has cost.
func note(t protocol.Totals) string {
	parts := []string{fmt.Sprintf("×%d", t.Steps), duration(t.DurationMs)}
	if t.Usage.Counted() {
		parts = append(parts, atLeast(t.StepsWithoutUsage)+tokens(t.Usage))
	} else {
		parts = append(parts, "tokens unknown")
	}
	if t.Usage != nil && t.Usage.CostUSD != nil {
		parts = append(parts, atLeast(t.StepsWithoutCost)+dollars(*t.Usage.CostUSD))
	}
	return strings.Join(parts, " · ")
}

// path is the way as a list of nodes.
func (j *journey) path() []string {
	path := []string{protocol.StartNode}
	for _, m := range j.moves {
		if m.From != path[len(path)-1] {
			path = append(path, m.From)
		}
		path = append(path, m.To)
	}
	return path
}

func (j *journey) roles() []roleTotals {
	roles := []roleTotals{}
	for _, role := range flow.Roles(j.workflow) {
		if sum := j.totals[role]; sum != nil {
			roles = append(roles, roleTotals{Role: role, Totals: *sum})
		}
	}
	return roles
}
