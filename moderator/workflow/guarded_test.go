package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
)

const guardedRoles = `name: base
description: d
roles:
  a: { description: d, goal: g, answer: { $status: string, n: integer } }
  b: { description: d, goal: g }
  c: { description: d, goal: g }
graph:
`

// The edge "_" takes only statuses without an edge of their own, wherever it stands.
func TestDefaultAfterGuardedStatuses(t *testing.T) {
	t.Parallel()
	def, err := parse(guardedRoles + `  $START: a
  a:
    _: { role: b, prompt: other }
    yes: [{ role: c, when: meta.n > 1, prompt: many }, { role: $END, prompt: few }]
  b: $END
  c: $END
`)
	require.NoError(t, err)
	for _, c := range []struct {
		status string
		n      int64
		role   string
	}{{"yes", 2, "c"}, {"yes", 1, ""}, {"no", 2, "b"}} {
		last := &moderator.Last{Role: "a", Output: map[string]any{"$status": c.status, "n": c.n}}
		d, err := moderator.Next(t.Context(), moderator.State{Workflow: def.Workflow, Last: last, Depth: 1})
		require.NoError(t, err)
		require.Equal(t, c.role, d.Role, "%s %d", c.status, c.n)
	}
}

// Edges "resume" of a list would be ignored: a thread would start again at "_".
func TestGuardedResume(t *testing.T) {
	t.Parallel()
	_, err := parse(guardedRoles + `  $START:
    _: a
    resume: [{ role: b, when: "$inputs.n = 1", prompt: one }, { role: c, prompt: others }]
  a: $END
  b: $END
  c: $END
inputs: { n: integer = 1 }
`)
	require.Len(t, problemLines(t, err), 2)
}

// The first edge of a thread can depend on its inputs.
func TestGuardedStart(t *testing.T) {
	t.Parallel()
	for _, begin := range []string{"_", "new"} {
		def, err := parse(guardedRoles + `  $START: { ` + begin + `: [{ role: b, when: "$inputs.n = 1", prompt: one }, { role: c, prompt: others }] }
  a: $END
  b: $END
  c: a
inputs: { n: integer = 1 }
`)
		require.NoError(t, err)
		for n, role := range map[int64]string{1: "b", 2: "c"} {
			start := protocol.Start{Inputs: map[string]any{"n": n}}
			d, err := moderator.Next(t.Context(), moderator.State{Workflow: def.Workflow, Start: start})
			require.NoError(t, err)
			require.Equal(t, role, d.Role)
		}
	}
}
