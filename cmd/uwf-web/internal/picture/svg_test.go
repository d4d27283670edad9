package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestMain(m *testing.M) { os.Exit(prosetest.Run(m)) }

// texts parses an SVG strictly and returns its texts.
func texts(t *testing.T, svg string) []string {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var all []string
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return all
		}
		require.NoError(t, err)
		if text, ok := token.(xml.CharData); ok && strings.TrimSpace(string(text)) != "" {
			all = append(all, string(text))
		}
	}
}

// review returns a workflow with a loop, roles that aren't played by agents, and a role with children.
func review(text string) protocol.Workflow {
	edges := func(to ...string) protocol.GraphNode {
		n := protocol.GraphNode{Edges: map[string]protocol.Edge{}}
		for i := 0; i < len(to); i += 2 {
			n.Edges[to[i]] = protocol.Edge{Role: to[i+1]}
		}
		return n
	}
	return protocol.Workflow{
		Name: text, Description: text,
		Roles: map[string]protocol.Role{
			"maker": {Description: text}, "tests": {Run: []string{"make"}}, "gate": {Person: true}, "reader": {},
			"panel": {All: map[string]protocol.ChildRole{"a": {Role: "reader"}}},
		},
		Graph: map[string]protocol.GraphNode{
			"$START": edges("_", "maker"), "maker": edges("done", "tests"),
			"tests": edges("passed", "panel", "failed", "maker", text, "maker"),
			"panel": edges("_", "gate"), "gate": edges("approved", "$END", "rejected", "maker"),
		},
	}
}

func TestSVG(t *testing.T) {
	t.Parallel()
	svg, err := SVG(diagram.Of(review("w")))
	require.NoError(t, err)
	all := texts(t, svg)
	for _, want := range []string{"$START", "maker", "failed", "$END", "Workflow w"} {
		require.Contains(t, all, want)
	}
	require.Contains(t, strings.Join(all, "\n"), "gate leads: approved to $END, rejected to maker", "in words, for those who cannot see it")
	require.NotContains(t, svg, "NaN")
	for _, want := range []string{
		"prefers-color-scheme: dark", `class="node role command"`, `stroke-dasharray="6 3"`, `class="edge part`, `class="edge back"`,
	} {
		require.Contains(t, svg, want)
	}
	again, err := SVG(diagram.Of(review("w")))
	require.NoError(t, err)
	require.Equal(t, svg, again, "the same workflow gives the same bytes")
}

func TestRun(t *testing.T) {
	t.Parallel()
	g := diagram.Of(review("w")).Traced(diagram.Trace{Here: "tests", Busy: true, Moves: []diagram.Move{
		{From: "$START", To: "maker"}, {From: "maker", To: "tests"}, {From: "tests", To: "maker", Status: "failed"}}})
	svg, err := SVG(g)
	require.NoError(t, err)
	texts(t, svg)
	for _, want := range []string{"role command here", "role person unseen", "edge back taken", "edge untaken", "uwf-pulse"} {
		require.Contains(t, svg, want)
	}
}

func TestTooLarge(t *testing.T) {
	t.Parallel()
	_, err := SVG(random(1, 190))
	require.NoError(t, err)
	_, err = SVG(random(1, 201))
	require.ErrorIs(t, err, ErrTooLarge)
}

// Text from a workflow can't end a text or open a tag.
func FuzzSVG(f *testing.F) {
	f.Add("w")
	f.Add("a\"<b>&amp;'|`]}#%\\n\x00\x1b[31m\n-->")
	f.Add(strings.Repeat("很长的描述", 20))
	f.Fuzz(func(t *testing.T, text string) {
		svg, err := SVG(diagram.Of(review(text)))
		require.NoError(t, err)
		texts(t, svg)
		require.NotContains(t, svg, "<b>")
	})
}
