//go:build agents

package agentstest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// skill tests the skill that uwf setup installs: a user of the real program asks for a fix with a reviewer.
// The model makes exactly the calls that the skill lists.
func skill(t *testing.T, b *bench) {
	build(t, "uwf-mock")
	scenario := filepath.Join(b.dir, "scenario.yaml")
	require.NoError(t, os.WriteFile(scenario, []byte(`steps:
  - role: planner
    output: "---\n$status: ready\ncause: c\nplan: p\n---\n"
  - role: developer
    output: "---\nsummary: fixed\ntestResult: ok\n---\n"
  - role: reviewer
    output: "---\n$status: approved\nsummary: The median is right now.\n---\n"
`), 0o600))
	config, err := json.Marshal(map[string]any{
		"defaultAgent": "mock", "agents": map[string]any{"mock": map[string]any{"command": "uwf-mock", "args": []string{"--mock-data", scenario}}},
	})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(b.dir, "home", "config.yaml"), config, 0o600))
	defer b.configure(nil)

	env := slices.Clone(b.env)
	for name, value := range b.agent["env"].(map[string]string) {
		env = append(env, name+"="+value)
	}
	run := func(argv ...string) string {
		cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
		cmd.Dir, cmd.Env = filepath.Join(b.dir, "work"), env
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	var installed struct{ Skills []string }
	require.NoError(t, json.Unmarshal([]byte(run(filepath.Join(b.bin, "uwf"), "setup", "--skill", "--json")), &installed))
	text, err := os.ReadFile(installed.Skills[0])
	require.NoError(t, err)

	calls := regexp.MustCompile("(?m)^[0-9]\\. `(.*?)`").FindAllStringSubmatch(string(text), -1)
	require.NotEmpty(t, calls)
	require.LessOrEqual(t, len(calls), 3)
	var script []reply
	for _, call := range calls {
		command := regexp.MustCompile(`<the task[^>]*>`).ReplaceAllString(call[1], "median() is wrong")
		script = append(script, reply{run: command})
	}
	b.model.play(append(script, reply{text: "The run is done."})...)
	out := run(b.hand[0], "-p", "fix this with a reviewer", "--dangerously-skip-permissions")
	require.Contains(t, out, "The run is done.")

	asked := b.model.asked()
	require.Len(t, asked, len(calls)+1)
	require.Contains(t, asked[0], "Run a task through several agents", "the program offers the skill to its model")
	var list []struct{ WorkflowName, Status string }
	b.json(&list, "thread", "list", "--all")
	require.True(t, slices.ContainsFunc(list, func(r struct{ WorkflowName, Status string }) bool {
		return r.WorkflowName == "fix" && r.Status == "completed"
	}), "%v", list)
	require.True(t, strings.Contains(asked[len(calls)], "The median is right now."), "the model reads the result")
}
