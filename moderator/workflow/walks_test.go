package workflow_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

// wild returns a random workflow of roles r0 …, whose answers a, b and c have the fields x, y and both.
// prompts sets the prompts of its edges by index.
func wild(r *rand.Rand) (text func(prompts map[int]string) string, edges, roles int) {
	const schema = `{ oneOf: [{ type: object, properties: { $status: { const: a }, x: { type: string } }, required: [$status, x] }, { type: object, properties: { $status: { const: b }, y: { type: string } }, required: [$status, y] }, { type: object, properties: { $status: { const: c }, x: { type: string }, y: { type: string } }, required: [$status, x, y] }] }`
	roles = 2 + r.IntN(5)
	type edge struct{ status, to string }
	var graph [][]edge
	any := func() string {
		return append([]string{"$END", "$FAIL", "$SUSPEND"}, strings.Fields("r0 r1 r2 r3 r4 r5")[:roles]...)[r.IntN(roles+3)]
	}
	start := []edge{{"_", "r0"}}
	if r.IntN(2) == 0 {
		start = append(start, edge{"resume", fmt.Sprint("r", r.IntN(roles))})
	}
	for i := range roles {
		node := []edge{{"a", fmt.Sprint("r", (i+1)%roles)}, {"b", any()}, {"c", []string{"$END", any()}[r.IntN(2)]}}
		if i == roles-1 {
			node[2].to = "$END"
		}
		if r.IntN(2) == 0 {
			node = append(node, edge{"$error", any()})
		}
		graph = append(graph, node)
	}
	graph = append(graph, start)
	for _, node := range graph {
		edges += len(node)
	}
	return func(prompts map[int]string) string {
		var b strings.Builder
		b.WriteString("name: base\ndescription: d\nroles:\n")
		for i := range roles {
			fmt.Fprintf(&b, "  r%d: { description: d, goal: g, schema: %s }\n", i, schema)
		}
		b.WriteString("graph:\n")
		n := 0
		for i, node := range graph {
			name := fmt.Sprint("r", i)
			if i == roles {
				name = "$START"
			}
			fmt.Fprintf(&b, "  %s:\n", name)
			for _, e := range node {
				fmt.Fprintf(&b, "    %s: { role: %s, prompt: 'x%s' }\n", e.status, e.to, prompts[n])
				n++
			}
		}
		return b.String()
	}, edges, roles
}

// If validate reports nothing, no path of a thread fails because of a missing answer.
func TestMissingPartsAreReported(t *testing.T) {
	t.Parallel()
	tried, taken, rendered := 0, 0, 0
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 3))
		text, edges, roles := wild(r)
		prompts := map[int]string{}
		if _, err := parse(text(nil)); err != nil {

			continue // a role that no path leads to, or from
		}
		for n := range edges {
			for range 3 {
				before := prompts[n]
				prompts[n] += fmt.Sprintf("{{$steps.r%d.%s}}", r.IntN(roles), []string{"x", "y"}[r.IntN(2)])
				tried++
				if def, err := parse(text(prompts)); err != nil || len(def.Notices) > 0 {
					prompts[n] = before
				} else {
					taken++
				}
			}
		}
		def, err := parse(text(prompts))
		require.NoError(t, err)
		for range 20 {
			rendered += wander(t, r, def.Workflow, text(prompts))
		}
	}
	require.Greater(t, taken, tried/20)
	require.Greater(t, rendered, 5_000)
}

// wander walks randomly through a workflow and returns the number of prompts rendered.
func wander(t *testing.T, r *rand.Rand, w protocol.Workflow, text string) (n int) {
	t.Helper()
	var history []moderator.HistoryStep
	s := moderator.State{Workflow: w, Start: protocol.Start{Prompt: "p"}, History: func(yield func(moderator.HistoryStep, error) bool) {
		for _, h := range slices.Backward(history) {
			if !yield(h, nil) {
				return
			}
		}
	}}
	d, err := moderator.Next(t.Context(), s)
	for range 40 {
		require.NoError(t, err, "%s\n%v", text, history)
		n++
		if d.Kind != moderator.Run {
			d, err = moderator.Resume(t.Context(), s, d.Kind == moderator.End, "go on")
			if err == nil && d.Kind == moderator.Run {
				continue
			}
			require.NoError(t, err, text)
		}
		step := moderator.HistoryStep{Role: d.Role, Visits: map[string]int{}}
		if len(history) > 0 {
			for role, n := range history[len(history)-1].Visits {
				step.Visits[role] = n
			}
		}
		step.Visits[d.Role]++
		answer := []map[string]any{{"$status": "a", "x": "1"}, {"$status": "b", "y": "2"}, {"$status": "c", "x": "3", "y": "4"}}[r.IntN(3)]
		switch _, leads := w.Graph[d.Role].Edges[protocol.ErrorStatus]; {
		case leads && r.IntN(3) == 0:
			step.Failed, answer = true, map[string]any{"$status": protocol.ErrorStatus, "error": "e", "code": "agent", "tries": 1}
		case r.IntN(5) == 0:
			answer = map[string]any{"$status": protocol.SuspendNode, "reason": "why?"}
		}
		step.Output = func() (any, error) { return answer, nil }
		history = append(history, step)
		s.Last = &moderator.Last{Role: d.Role, Output: answer, Failed: step.Failed}
		s.Depth = len(history)
		d, err = moderator.Next(t.Context(), s)
	}
	return n
}
