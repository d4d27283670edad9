package cli

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// TestReferenceIsTrue checks that each command line given to agents exists, with its flags, and only reads.
func TestReferenceIsTrue(t *testing.T) {
	t.Parallel()
	writes := []string{"start", "step", "exec", "run", "put", "add", "fork", "kill", "cancel", "stop", "resume", "turn"}
	lines := 0
	for _, line := range strings.Split(protocol.Reference(), "\n") {
		if !strings.HasPrefix(line, "uwf ") {
			continue
		}
		lines++
		text, _, _ := strings.Cut(line, "#")
		words := strings.Fields(text)[1:]
		a := commands{&app.App{}}
		args, err := cmdline.Reorder(a.root(), words)
		require.NoError(t, err, line)
		command := find(t, a.root().Commands, args)
		require.NotContains(t, writes, command.Name, line)
	}
	require.Greater(t, lines, 5)
}

// find follows the command words to a leaf, or to a group.
func find(t *testing.T, commands []*ucli.Command, words []string) *ucli.Command {
	t.Helper()
	for _, c := range commands {
		if len(words) > 0 && c.HasName(words[0]) {
			if len(c.Subcommands) == 0 || len(words) == 1 {
				return c
			}
			return find(t, c.Subcommands, words[1:])
		}
	}
	require.Fail(t, "no such command", "%v", words)
	return nil
}
