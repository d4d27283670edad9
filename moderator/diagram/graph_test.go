package diagram_test

import (
	"fmt"
	"math/rand"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
)

// draft returns a workflow written as lines "node: label>target label>target".
func draft(lines ...string) protocol.Workflow {
	w := protocol.Workflow{Name: "w", Description: "d", Roles: map[string]protocol.Role{}, Graph: map[string]protocol.GraphNode{}}
	for _, line := range lines {
		node, ways, _ := strings.Cut(line, ":")
		edges := map[string]protocol.Edge{}
		for _, way := range strings.Fields(ways) {
			label, target, _ := strings.Cut(way, ">")
			edges[label] = protocol.Edge{Role: target}
		}
		w.Graph[node] = protocol.GraphNode{Edges: edges}
		if !strings.HasPrefix(node, "$") {
			w.Roles[node] = protocol.Role{Description: "does " + node}
		}
	}
	return w
}

func solve() protocol.Workflow {
	return draft("$START: _>planner resume>developer", "planner: ready>developer unclear>$SUSPEND",
		"developer: done>reviewer", "reviewer: approved>$END rejected>developer")
}

// awkward returns a workflow whose names look like markup in some format.
func awkward() protocol.Workflow {
	const name = "a\"<b>&amp;'|`]}#%\\n\x00\x1b[31m\n-->"
	return protocol.Workflow{
		Name: name, Description: name,
		Roles: map[string]protocol.Role{name: {Description: name}, "自动化工作流": {Description: strings.Repeat("很长的描述", 20)}},
		Graph: map[string]protocol.GraphNode{
			"$START": {Edges: map[string]protocol.Edge{"new": {Role: name}}},
			name: {Transitions: []protocol.Transition{
				{Edge: protocol.Edge{Role: "自动化工作流"}, Condition: name},
				{Edge: protocol.Edge{Role: name}, Condition: "again"},
				{Edge: protocol.Edge{Role: "nobody"}},
			}},
			"自动化工作流": {Edges: map[string]protocol.Edge{name: {Role: "$END"}, "x": {Role: "$END"}}},
		},
	}
}

func TestText(t *testing.T) {
	t.Parallel()
	require.Equal(t, `w
d

$START
├─ planner  does planner
│  ├─ ready → developer  does developer
│  │  └─ done → reviewer  does reviewer
│  │     ├─ approved → $END
│  │     └─ rejected → developer ↑
│  └─ unclear → $SUSPEND
└─ resume → developer ↑
`, diagram.Of(solve()).Text(80))
}

func TestTextKeepsWithinTheWidth(t *testing.T) {
	t.Parallel()
	w := solve()
	w.Graph["developer"] = protocol.GraphNode{Transitions: []protocol.Transition{
		{Edge: protocol.Edge{Role: "reviewer"}, Condition: "$count(steps) < 5"}, {Edge: protocol.Edge{Role: "$END"}},
	}}
	require.Equal(t, `w
d

$START
├─ planner  does plan…
│  ├─ ready → developer
│  │  ├─ 1. $cou… → reviewer ↓
│  │  └─ 2. othe… → $END
│  └─ unclear → $SUSPEND
└─ resume → developer ↑

reviewer  does review…
├─ approved → $END
└─ rejected → developer ↑
`, diagram.Of(w).Text(22))
}

func TestTextDrawsRolesThatNothingLeadsTo(t *testing.T) {
	t.Parallel()
	require.Contains(t, diagram.Of(draft("$START: _>a", "a: _>$END", "lost: _>a")).Text(0), "\nlost  does lost\n└─ a ↑\n")
}

func TestMermaid(t *testing.T) {
	t.Parallel()
	require.Equal(t, `---
title: "w"
---
flowchart TD
  n0(["#36;START"])
  n1["planner<br/><small>does planner</small>"]
  n2["developer<br/><small>does developer</small>"]
  n3["reviewer<br/><small>does reviewer</small>"]
  n4{{"#36;SUSPEND"}}
  n5(["#36;END"])
  n0 --> n1
  n0 -->|"resume"| n2
  n1 -->|"ready"| n2
  n1 -->|"unclear"| n4
  n2 -->|"done"| n3
  n3 -->|"approved"| n5
  n3 -.->|"rejected"| n2
`, diagram.Of(solve()).Mermaid())
}

// Text from a workflow can't end a text of the format, open a tag or produce a character code.
func TestMermaidEscapes(t *testing.T) {
	t.Parallel()
	for _, line := range strings.Split(diagram.Of(awkward()).Mermaid(), "\n")[4:] {
		require.Contains(t, []int{0, 2}, strings.Count(line, `"`), line)
		line = strings.NewReplacer("<br/><small>", "", "</small>", "", "-->", "", "-.->", "").Replace(line)
		require.False(t, strings.ContainsAny(line, "<>&`\\\x00\x1b"), line)
	}
}

func TestDOTEscapes(t *testing.T) {
	t.Parallel()
	out := diagram.Of(awkward()).DOT()
	require.Contains(t, out, `label="a\"<b>&amp;amp;'|`)
	require.Contains(t, out, `%\\n[31m -->"`)
	require.Contains(t, out, `n2 [label="自动化工作流"`)
	require.NotContains(t, out, "\x1b")
}

func FuzzGraphs(f *testing.F) {
	f.Add("role", "status", "description", 40)
	f.Add("at the bottom", "at the bottom", "leads only to itself", 40)
	f.Add("a\"]", "x|\x00", "<b>&\n", 3)
	f.Fuzz(func(t *testing.T, role, status, description string, width int) {
		w := protocol.Workflow{
			Name: role, Description: description,
			Roles: map[string]protocol.Role{role: {Description: description}},
			Graph: map[string]protocol.GraphNode{
				"$START": {Edges: map[string]protocol.Edge{status: {Role: role}, "_": {Role: status}}},
				role:     {Edges: map[string]protocol.Edge{status: {Role: "$END"}, role: {Role: role}}},
			},
		}
		g := diagram.Of(w)
		g.Text(width)
		g.Mermaid()
		g.DOT()
	})
}

func TestLargeGraphs(t *testing.T) {
	t.Parallel()
	chain := func(n int) diagram.Graph {
		lines := []string{"$START: _>r0"}
		r := rand.New(rand.NewSource(1))
		for i := range n - 1 {
			lines = append(lines, fmt.Sprintf("r%d: ok>r%d no>r%d", i, i+1, r.Intn(n)))
		}
		return diagram.Of(draft(append(lines, fmt.Sprintf("r%d: _>$END", n-1))...))
	}
	g := chain(10_000)
	require.NotEmpty(t, g.Text(80))
	require.NotEmpty(t, g.Mermaid())
}

// Every format shows who plays a role.
func TestPlayersAreSeen(t *testing.T) {
	t.Parallel()
	g := diagram.Of(protocol.Workflow{
		Roles: map[string]protocol.Role{"tests": {Description: "Runs.", Run: []string{"make"}}, "gate": {Description: "Asks.", Person: true}},
		Graph: map[string]protocol.GraphNode{
			"$START": {Edges: map[string]protocol.Edge{"_": {Role: "tests"}}},
			"tests":  {Edges: map[string]protocol.Edge{"_": {Role: "gate"}}},
			"gate":   {Edges: map[string]protocol.Edge{"_": {Role: "$END"}}},
		},
	})
	for text, want := range map[string][]string{
		g.Text(80): {"command: Runs.", "person: Asks."}, g.DOT(): {"shape=component", "shape=house"},
		g.Mermaid(): {`[["tests`, `[/"gate`},
	} {
		for _, w := range want {
			require.Contains(t, text, w)
		}
	}
}

// Roles that play another role in child threads are attached to it, also in a run.
func TestParts(t *testing.T) {
	t.Parallel()
	w := draft("$START: _>panel", "panel: _>fixes", "fixes: _>$END", "reviewer:", "fixer:")
	delete(w.Graph, "reviewer")
	delete(w.Graph, "fixer")
	w.Roles["panel"] = protocol.Role{All: map[string]protocol.ChildRole{"b": {Role: "reviewer"}, "a": {Role: "reviewer"}}}
	w.Roles["fixes"] = protocol.Role{Each: &protocol.EachRole{ChildRole: protocol.ChildRole{Role: "fixer"}}}
	g := diagram.Of(w)
	text := g.Text(0)
	require.Contains(t, text, "part a → reviewer ")
	require.Contains(t, text, "part b → reviewer ↑\n")
	require.Contains(t, text, "each item → fixer ")
	require.Contains(t, g.Mermaid(), `-.->|"part a"|`)
	require.Contains(t, g.DOT(), "style=dotted")
}
