package moderator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestKnownCommand(t *testing.T) {
	t.Parallel()
	start := protocol.Start{Prompt: "task", Inputs: map[string]any{"test": "npm test"}}
	argv, env := KnownCommand(protocol.Role{Run: []string{"sh", "-c", "{{{$inputs.test}}}", "{{{$prompt}}}", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{", "{{#$steps.a}}x{{/$steps.a}}"},
		Env: map[string]string{"A": "{{{$prompt}}}", "B": "{{b}}"}}, start)
	require.Equal(t, []string{"sh", "-c", "npm test", "task", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{", "{{#$steps.a}}x{{/$steps.a}}"}, argv)
	require.Equal(t, map[string]string{"A": "task", "B": "{{b}}"}, env)
	script, _ := KnownCommand(protocol.Role{Script: "echo {{{$prompt}}}"}, start)
	require.Equal(t, []string{"sh", "-e", "-c", "echo {{{$prompt}}}"}, script)
	require.Equal(t, []string{"env", "A=task", "B={{b}}", "x"}, CommandLine([]string{"x"}, env))
}

// A shell without words, which a stored workflow can have, is an error.
func TestBlankShell(t *testing.T) {
	t.Parallel()
	w := protocol.Workflow{Language: protocol.Language3, Roles: map[string]protocol.Role{"a": {Script: "x", Shell: []string{""}, Frontmatter: "0000000000000", Capabilities: []string{}}},
		Graph: map[string]protocol.GraphNode{protocol.StartNode: {Edges: map[string]protocol.Edge{protocol.DefaultStatus: {Role: "a"}}}}}
	require.NoError(t, w.Validate())
	_, err := Next(t.Context(), State{Workflow: w})
	require.ErrorIs(t, err, ErrEmpty)
}

// A command argument or location that ends with a value has no trailing newlines, and command output has none
// anywhere. A prompt keeps all of them.
func TestOutputAsWord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role protocol.Role
		mid  string
	}{
		"a command":       {protocol.Role{Run: []string{"git"}}, "a\nb/"},
		"a script":        {protocol.Role{Script: "git"}, "a\nb/"},
		"data of one":     {protocol.Role{Run: []string{"git"}, Parse: protocol.ParseJSON}, "a\nb\n/"},
		"an agent's text": {protocol.Role{}, "a\nb\n/"},
	} {
		s := State{Workflow: protocol.Workflow{Roles: map[string]protocol.Role{"first": c.role, "use": {Run: []string{"echo", "{{output}}", "{{output}}/", "{{#output}}{{.}}{{/output}}", "x\n"}}}}}
		output := map[string]any{"output": "a\nb\n"}
		at := place{node: "first", key: "passed", status: "passed"}
		argv, _, err := commandOf(s, at, "use", output)
		require.NoError(t, err, name)
		require.Equal(t, []string{"echo", "a\nb", c.mid, "a\nb", "x\n"}, argv, name)
		edge := protocol.Edge{Role: "use", Prompt: "{{output}}", Location: "{{output}}"}
		where, err := locationOf(s, at, edge, output)
		require.NoError(t, err, name)
		require.Equal(t, "a\nb", where, name)
		inputs, err := inputsFor(s, at, "x", map[string]any{"a": "{{output}}", "b": []any{"- {{output}}", "{{output}}."}}, view(s.Start, "", output))
		require.NoError(t, err, name)
		require.Equal(t, map[string]any{"a": "a\nb", "b": []any{"- a\nb", "a\nb\n."}}, inputs, name)
		prompt, err := promptOf(s, at, edge, output)
		require.NoError(t, err, name)
		require.Contains(t, prompt, "a\nb\n", name)
	}
}
