package moderator

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// route follows the edge that the thread's newest step leads to, without regard
// to limits.
func route(ctx context.Context, s State) (Decision, error) {
	at, edge, err := pick(ctx, s)
	if err != nil {
		return Decision{}, err
	}
	return follow(ctx, s, at, edge, s.output())
}

// Route is [Next] without regard to limits and to what a role itself has asked for.
func Route(ctx context.Context, s State) (Decision, error) { return route(ctx, s) }

// output is what the newest step answered, nil if there is none.
func (s State) output() any {
	if s.Last == nil {
		return nil
	}
	return s.Last.Output
}

// node is where the thread stands.
func (s State) node() string {
	if s.Last == nil {
		return protocol.StartNode
	}
	return s.Last.Role
}

// pick finds the edge that fits the newest step.
func pick(ctx context.Context, s State) (place, protocol.Edge, error) {
	node := s.node()
	n, ok := s.Workflow.Graph[node]
	if !ok {
		return place{}, protocol.Edge{}, noNode(s.Workflow, node)
	}
	if n.Transitions != nil {
		return pickTransition(ctx, s, n.Transitions)
	}
	status, edge, err := pickEdge(n, node, s.output())
	return place{node, status, status}, edge, err
}

// pickEdge finds the one edge of a map that fits an output. At $START there is
// no status: the edge "_", or its alias, is taken.
func pickEdge(n protocol.GraphNode, node string, output any) (status string, _ protocol.Edge, _ error) {
	if node == protocol.StartNode {
		return pickStart(n)
	}
	if edge, only := n.Edges[protocol.DefaultStatus]; only && len(n.Edges) == 1 {
		return protocol.DefaultStatus, edge, nil
	}
	status, given := statusOf(output)
	if !given {
		status = protocol.DefaultStatus
	}
	edge, ok := n.Edges[status]
	if !ok { // what has no edge of its own takes that of the others
		status, edge, ok = orDefault(n, status)
	}
	if !ok {
		return "", protocol.Edge{}, noEdge(node, status, given, slices.Sorted(maps.Keys(n.Edges)))
	}
	return status, edge, nil
}

func orDefault(n protocol.GraphNode, status string) (string, protocol.Edge, bool) {
	if edge, ok := n.Edges[protocol.DefaultStatus]; ok {
		return protocol.DefaultStatus, edge, true
	}
	return status, protocol.Edge{}, false
}

func pickStart(n protocol.GraphNode) (string, protocol.Edge, error) {
	for _, status := range []string{protocol.DefaultStatus, protocol.StartAlias} {
		if edge, ok := n.Edges[status]; ok {
			return status, edge, nil
		}
	}
	return "", protocol.Edge{}, noEdge(protocol.StartNode, protocol.DefaultStatus, true, slices.Sorted(maps.Keys(n.Edges)))
}

// statusOf is the output's $status, else its status; only strings count.
func statusOf(output any) (string, bool) {
	object, ok := output.(map[string]any)
	if !ok {
		return "", false
	}
	for _, key := range []string{protocol.StatusKey, "status"} {
		if status, ok := object[key].(string); ok {
			return status, true
		}
	}
	return "", false
}

// follow turns an edge into a decision.
func follow(ctx context.Context, s State, at place, edge protocol.Edge, output any) (Decision, error) {
	d := Decision{Kind: Run, Role: edge.Role, Status: at.status}
	switch _, isRole := s.Workflow.Roles[edge.Role]; {
	case edge.Role == protocol.EndNode:
		d.Kind, d.Role = End, ""
	case edge.Role == protocol.SuspendNode:
		if at.node == protocol.StartNode {
			return Decision{}, &RouteError{Node: at.node, Status: at.status, Message: "a thread cannot start with " + protocol.SuspendNode}
		}
		d.Kind, d.Role, d.Cause = Suspend, s.Last.Role, ByTarget
	case !isRole:
		return Decision{}, noRole(s.Workflow, at, edge.Role)
	}
	var err error
	if d.Prompt, err = promptOf(s, at, edge, output); err != nil {
		return Decision{}, err
	}
	if d.Kind != Run {
		return d, nil
	}
	if d.Location, err = locationOf(s, at, edge, output); err != nil {
		return Decision{}, err
	}
	if s.Workflow.Roles[edge.Role].HasChildren() {
		err = fan(ctx, s, at, &d, output)
		return d, err
	}
	d.Command, err = commandOf(s, at, edge.Role, output)
	return d, err
}

// atLimit reports whether one more step of a role would go beyond a limit, and why.
func atLimit(s State, role string) (string, bool) {
	if most := s.Limits.MaxSteps; most > 0 && s.Steps >= most {
		return fmt.Sprintf("the limit of %s is reached (maxSteps); %q would be next. Resuming grants as many again.", plural(most, "step"), role), true
	}
	if most := s.Limits.MaxVisitsPerRole; most > 0 && s.Visits[role] >= most {
		return fmt.Sprintf("%q had its turn %s (maxVisitsPerRole) and would be next again. Resuming grants as many again.", role, plural(most, "time")), true
	}
	return "", false
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
