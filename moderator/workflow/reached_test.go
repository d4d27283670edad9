package workflow

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// walked returns a graph of roles r0 … with random edges.
func walked(r *rand.Rand) *draft {
	d := &draft{report: &report{}, roleByName: map[string]*roleDraft{}, nodeByName: map[string]*nodeDraft{}}
	n := 1 + r.IntN(8)
	targets := []string{protocol.EndNode, protocol.SuspendNode, protocol.FailNode}
	for i := range n {
		targets = append(targets, fmt.Sprint("r", i))
	}
	add := func(name string, statuses ...string) {
		node := &nodeDraft{name: name}
		for _, s := range statuses {
			to := targets[r.IntN(len(targets))]
			if name == protocol.StartNode {
				to = targets[3+r.IntN(n)]
			}
			node.edges = append(node.edges, &edgeDraft{status: s, edge: protocol.Edge{Role: to}})
		}
		d.nodes, d.nodeByName[name] = append(d.nodes, node), node
	}
	add(protocol.StartNode, append([]string{"_"}, []string{protocol.ResumeStatus}[:r.IntN(2)]...)...)
	for i := range n {
		name := fmt.Sprint("r", i)
		role := &roleDraft{name: name, schema: true}
		statuses := []string{"a", "b", "c"}[:1+r.IntN(3)]
		role.answers.byStatus = map[string]fields{}
		for _, s := range statuses {
			role.answers.byStatus[s] = fields{}
		}
		if r.IntN(3) == 0 {
			statuses = append(slices.Clone(statuses), protocol.ErrorStatus)
		}
		d.roles, d.roleByName[name] = append(d.roles, role), role
		add(name, statuses...)
	}
	return d
}

// state is the state of a walk: before or after a role's answer, and each role's last answer.
type state struct {
	role   string // "" at the end; or $START
	status string // "" before the answer
	last   [8]byte
}

// walk visits every state of every walk and reports each edge with the answers given when it is taken.
func walk(d *draft, taken func(n *nodeDraft, e *edgeDraft, last [8]byte)) {
	seen, queue := map[state]bool{}, []state{{role: protocol.StartNode, status: "_"}}
	for len(queue) > 0 {
		s := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		if seen[s] {
			continue
		}
		seen[s] = true
		node := d.nodeByName[s.role]
		if s.role == "" {
			node = d.nodeByName[protocol.StartNode]
			s.status = protocol.ResumeStatus
		}
		for _, e := range node.edges {
			next := s
			switch {
			case s.status == e.status, s.status == "" && e.status == protocol.ErrorStatus:
				taken(node, e, s.last)
				next.role, next.status = e.edge.Role, ""
				switch e.edge.Role {
				case protocol.SuspendNode:
					next.role = node.name
				case protocol.EndNode, protocol.FailNode:
					next.role = ""
				}
			case s.status == "" && s.role != "" && e.status != protocol.ErrorStatus: // it answers
				next.status = e.status
				next.last[s.role[1]-'0'] = e.status[0]
			default:
				continue
			}
			queue = append(queue, next)
		}
	}
}

// The analysis of answered roles agrees with an enumeration of all walks through the graph.
func TestReachedAgainstAllWalks(t *testing.T) {
	t.Parallel()
	for seed := range uint64(400) {
		d := walked(rand.New(rand.NewPCG(seed, 1)))
		d.markFailures()
		type known struct {
			some     bool
			all      bool
			statuses map[string]bool
		}
		want := map[*edgeDraft]map[string]*known{}
		nodeOf := map[*edgeDraft]*nodeDraft{}
		states := 0
		walk(d, func(n *nodeDraft, e *edgeDraft, last [8]byte) {
			if want[e] == nil {
				want[e], nodeOf[e] = map[string]*known{}, n
			}
			states++
			for i, r := range d.roles {
				k := want[e][r.name]
				if k == nil {
					k = &known{all: true, statuses: map[string]bool{}}
					want[e][r.name] = k
				}
				k.some, k.all = k.some || last[i] != 0, k.all && last[i] != 0
				if last[i] != 0 {
					k.statuses[string(last[i])] = true
				}
			}
		})
		require.NotZero(t, states)
		for e, roles := range want {
			for name, k := range roles {
				x := d.earlierAt(d.roleByName[name], answer{node: nodeOf[e], edge: e})
				at := fmt.Sprintf("seed %d, %s, %s", seed, nodeOf[e].at(e), name)
				require.Equal(t, []bool{k.some, k.all}, []bool{x.possible, x.certain}, at)
				if k.all {
					got := map[string]bool{}
					for _, s := range x.statuses {
						got[s] = true
					}
					require.Equal(t, k.statuses, got, at)
				}
			}
		}
	}
}
