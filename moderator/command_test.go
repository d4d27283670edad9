package moderator

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

func TestKnownCommand(t *testing.T) {
	t.Parallel()
	start := protocol.Start{Prompt: "task", Inputs: map[string]any{"test": "npm test"}}
	require.Equal(t, []string{"sh", "-c", "npm test", "task", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{"},
		KnownCommand([]string{"sh", "-c", "{{{$inputs.test}}}", "{{{$prompt}}}", "{{{place}}}", "{{{$inputs.gone}}} npm", "{{"}, start))
}

// What a command prints is a word, or a location, without the line feed at its end; a prompt has all of
// it, and so has what an agent answers.
func TestOutputAsWord(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		role protocol.Role
		want string
	}{
		"a command":       {protocol.Role{Run: []string{"git"}}, "a\nb"},
		"data of one":     {protocol.Role{Run: []string{"git"}, Parse: protocol.ParseJSON}, "a\nb\n"},
		"an agent's text": {protocol.Role{}, "a\nb\n"},
	} {
		s := State{Workflow: protocol.Workflow{Roles: map[string]protocol.Role{"first": c.role, "use": {Run: []string{"echo", "{{output}}"}}}}}
		output := map[string]any{"output": "a\nb\n"}
		at := place{node: "first", key: "passed", status: "passed"}
		argv, err := commandOf(s, at, "use", output)
		require.NoError(t, err, name)
		require.Equal(t, []string{"echo", c.want}, argv, name)
		edge := protocol.Edge{Role: "use", Prompt: "{{output}}", Location: "{{output}}"}
		where, err := locationOf(s, at, edge, output)
		require.NoError(t, err, name)
		require.Equal(t, c.want, where, name)
		prompt, err := promptOf(s, at, edge, output)
		require.NoError(t, err, name)
		require.Contains(t, prompt, "a\nb\n", name)
	}
}
