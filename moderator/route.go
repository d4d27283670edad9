package moderator

import (
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/protocol"
)

// route follows the edge that the thread's newest step leads to, without regard
// to limits.
func route(s State) (Decision, error) {
	node, output := protocol.StartNode, any(nil)
	if s.Last != nil {
		node, output = s.Last.Role, s.Last.Output
	}
	status, edge, err := pick(s.Workflow, node, output)
	if err != nil {
		return Decision{}, err
	}
	return follow(s, place{node, status}, edge, output)
}

// pick finds the one edge of a node that fits an output. At $START there is no
// status: the edge "_", or its alias, is taken.
func pick(w protocol.Workflow, node string, output any) (status string, _ protocol.Edge, _ error) {
	n, ok := w.Graph[node]
	if !ok {
		return "", protocol.Edge{}, noNode(w, node)
	}
	if n.Transitions != nil {
		return "", protocol.Edge{}, &RouteError{Role: node, Message: fmt.Sprintf(
			"the node of %q is a list of transitions, which this version of uwf cannot route; use a map from status to edge", node)}
	}
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
	if !ok {
		return "", protocol.Edge{}, noEdge(node, status, given, slices.Sorted(maps.Keys(n.Edges)))
	}
	return status, edge, nil
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
func follow(s State, at place, edge protocol.Edge, output any) (Decision, error) {
	d := Decision{Kind: Run, Role: edge.Role, Status: at.status}
	switch _, isRole := s.Workflow.Roles[edge.Role]; {
	case edge.Role == protocol.EndNode:
		d.Kind, d.Role = End, ""
	case edge.Role == protocol.SuspendNode:
		if at.node == protocol.StartNode {
			return Decision{}, &RouteError{Role: at.node, Status: at.status, Message: "a thread cannot start with " + protocol.SuspendNode}
		}
		d.Kind, d.Role, d.Cause = Suspend, s.Last.Role, ByTarget
	case !isRole:
		return Decision{}, noRole(s.Workflow, at, edge.Role)
	}
	var err error
	if d.Prompt, err = promptOf(s, at, edge, output); err != nil {
		return Decision{}, err
	}
	if d.Kind == Run {
		d.Location, err = locationOf(s, at, edge, output)
	}
	return d, err
}

// atLimit tells whether one more step of a role would go beyond a limit, and why.
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
