// Package flow lists the edges and roles of a workflow in a canonical order, for nodes in both forms: a map
// from status to edge, or a list of transitions. Pictures, YAML and diffs use it. A stored map has lost its
// author's order, so the order follows from the graph alone: roles in order of reachability from $START.
package flow

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// Way is an outgoing edge of a node.
type Way struct {
	From                string
	Status              string // in a map: the status that selects it
	Number              int    // in a list: its position, from 1; 0 in a map
	protocol.Transition        // target; has a condition only in a list
}

// Label describes when the edge is taken; "" means always.
func (w Way) Label() string {
	switch {
	case w.Number == 0 && (w.Status == protocol.DefaultStatus || isStart(w)):
		return ""
	case w.Number == 0:
		return w.Status
	case w.Condition == "" && w.Number == 1:
		return ""
	}
	return strconv.Itoa(w.Number) + ". " + cmp.Or(w.Condition, "otherwise")
}

// OfFailure reports whether the edge handles a failure of its role.
func (w Way) OfFailure(of protocol.Workflow) bool {
	text := w.Status
	if w.Number > 0 {
		text = w.Condition
	}
	return of.Language == protocol.Language3 && strings.HasPrefix(text, protocol.ErrorStatus)
}

func isStart(w Way) bool {
	return w.From == protocol.StartNode && w.Status == protocol.StartAlias
}

// Ways lists the outgoing edges of a node: a list in its own order, a map by status, with "_" first and
// "$error", or the "resume" of $START, last.
func Ways(w protocol.Workflow, node string) []Way {
	n := w.Graph[node]
	var ways []Way
	for i, t := range n.Transitions {
		ways = append(ways, Way{From: node, Number: i + 1, Transition: t})
	}
	for _, status := range slices.SortedFunc(maps.Keys(n.Edges), byStatus(node)) {
		ways = append(ways, Way{From: node, Status: status, Transition: protocol.Transition{Edge: n.Edges[status]}})
	}
	return ways
}

func byStatus(node string) func(a, b string) int {
	rank := func(status string) int {
		switch {
		case status == protocol.DefaultStatus:
			return 0
		case node == protocol.StartNode && status == protocol.ResumeStatus, status == protocol.ErrorStatus:
			return 2
		}
		return 1
	}
	return func(a, b string) int {
		return cmp.Or(cmp.Compare(rank(a), rank(b)), cmp.Compare(a, b))
	}
}

// Roles lists all roles: those that $START reaches, nearest first, then the
// others by name.
func Roles(w protocol.Workflow) []string {
	var order []string
	seen := map[string]bool{}
	queue := []string{protocol.StartNode}
	for len(queue) > 0 {
		node := queue[0]
		queue = queue[1:]
		for _, way := range Ways(w, node) {
			if _, isRole := w.Roles[way.Role]; isRole && !seen[way.Role] {
				seen[way.Role] = true
				order = append(order, way.Role)
				queue = append(queue, way.Role)
			}
		}
	}
	for _, role := range slices.Sorted(maps.Keys(w.Roles)) {
		if !seen[role] {
			order = append(order, role)
		}
	}
	return order
}
