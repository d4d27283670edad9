package diagram_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestARunIsDrawnIntoItsGraph(t *testing.T) {
	t.Parallel()
	role := protocol.Role{Description: "does it"}
	w := protocol.Workflow{
		Name: "w", Roles: map[string]protocol.Role{"maker": role, "judge": role, "idler": role},
		Graph: map[string]protocol.GraphNode{
			"$START": {Edges: map[string]protocol.Edge{"_": {Role: "maker"}}},
			"maker":  {Edges: map[string]protocol.Edge{"done": {Role: "judge"}, "lazy": {Role: "idler"}}},
			"judge":  {Edges: map[string]protocol.Edge{"no": {Role: "maker"}, "poor": {Role: "maker"}, "yes": {Role: "$END"}}},
			"idler":  {Edges: map[string]protocol.Edge{"_": {Role: "$END"}}},
		},
	}
	plain := diagram.Of(w)
	g := plain.Traced(diagram.Trace{
		Moves: []diagram.Move{
			{"$START", "maker", ""}, {"maker", "judge", "done"}, {"judge", "maker", "poor"}, {"maker", "judge", "done"},
			{"judge", "$END", "yes"}, {"judge", "nobody", "x"},
		},
		Here: "$END", Notes: map[string]string{"maker": "×2 · 3s", "nobody": "x"},
	})
	require.NotContains(t, plain.Text(0), "×", "the graph itself stays as it was")

	text := g.Text(0)
	require.Contains(t, text, "└─ ×1 → maker  ×2 · 3s\n")
	require.Contains(t, text, "done ×2 → judge  does it\n")
	require.Contains(t, text, "no → maker ↑\n")
	require.Contains(t, text, "poor ×1 → maker ↑\n")
	require.Contains(t, text, "yes ×1 → $END ◀\n")
	require.Contains(t, text, "lazy → idler")

	require.Contains(t, g.Mermaid(), `==>|"done ×2"|`)
	prosetest.Text(t, g.Mermaid())
	require.Contains(t, g.DOT(), "penwidth=2.5")
}
