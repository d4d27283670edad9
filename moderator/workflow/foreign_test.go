package workflow_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/prosetest"
)

// TestForeignKeys checks that a hint for a key of another tool shows the right place.
func TestForeignKeys(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"model", "tools", "timeout", "retry", "env", "bash", "approval", "depends_on", "when", "system"} {
		_, err := parse(base(t, "    goal: Plan it.\n", "    goal: Plan it.\n    "+key+": x\n"))
		var problems *workflow.Problems
		require.ErrorAs(t, err, &problems)
		require.Len(t, problems.List, 1)
		require.Equal(t, 7, problems.List[0].Line)
		prosetest.Text(t, problemLines(t, err), key)
	}
}

// TestForeignFiles checks that another tool's workflow is recognized and reported once.
func TestForeignFiles(t *testing.T) {
	t.Parallel()
	for tool, text := range map[string]string{
		"Archon":         "name: x\ndescription: d\nnodes:\n  - id: plan\n    prompt: p\n    model: opus\n",
		"Conductor":      "workflow:\n  name: x\n  entry_point: a\nagents:\n  - name: a\n    prompt: \"{{ workflow.input.q }}\"\n    routes: [{to: $end}]\n",
		"Dagu":           "params:\n  - TOPIC: x\nsteps:\n  - name: a\n    command: echo ${TOPIC}\n",
		"GitHub Actions": "on: push\njobs:\n  build:\n    runs-on: ubuntu-latest\n    steps: [{run: make}]\n",
		"Fabro":          "// a comment\ndigraph Fix {\n  start [shape=Mdiamond]\n  start -> a\n}\n",
	} {
		_, err := workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(text)})
		require.Len(t, problemLines(t, err), 1, tool)
		prosetest.Error(t, err, tool)
	}
	for _, text := range []string{"nodes: {}\n", "agents: []\n", "digraph: x\n", "steps: []\nroles: {}\n", "steps: [{role: a, output: b}]\n", "/* digraph {}"} {
		_, err := workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(text)})
		require.NotContains(t, err.Error(), "a workflow of", text)
	}
}
