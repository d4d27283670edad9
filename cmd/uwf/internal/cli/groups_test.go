package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/util/cmdline"
)

// everyCommand calls visit with each command that is not hidden.
func everyCommand(words []string, commands []*ucli.Command, visit func(words []string, c *ucli.Command, siblings int)) {
	for _, c := range commands {
		if !c.Hidden {
			at := append(words[:len(words):len(words)], c.Name)
			visit(at, c, len(commands))
			everyCommand(at, c.Subcommands, visit)
		}
	}
}

// A long list of commands is divided into a few groups in the help.
func TestEveryCommandHasAGroup(t *testing.T) {
	t.Parallel()
	groups := []string{cmdline.Common, "Run", "Share", "Maintain", "Inspect", "Manage", "For agents"}
	everyCommand(nil, (commands{&app.App{}}).root().Commands, func(words []string, c *ucli.Command, siblings int) {
		if siblings > 9 || c.Category != "" {
			assert.Contains(t, groups, c.Category, "%v", words)
		}
	})
}

// The branches of the root and of thread have the names of the commands that they build, so a command line finds
// its command in the part of the tree that it asks for.
func TestOnlyTheAskedBranchIsBuilt(t *testing.T) {
	t.Parallel()
	a := commands{&app.App{}}
	whole, count := a.root(), func(root *ucli.App) (n int) {
		everyCommand(nil, root.Commands, func([]string, *ucli.Command, int) { n++ })
		return n
	}
	everyCommand(nil, whole.Commands, func(words []string, c *ucli.Command, _ int) {
		for _, name := range c.Names() {
			line := append(words[:len(words)-1:len(words)-1], name)
			if !cmdline.NamesCommand(whole, line) || line[0] == "help" {
				continue
			}
			part := a.root(line...)
			assert.True(t, cmdline.NamesCommand(part, line), "%v", line)
			assert.LessOrEqual(t, count(part), 30, "%v", line)
		}
	})
	assert.Equal(t, 2, count(a.rootFor([]string{"thread", "show", "T"})))
	for _, line := range [][]string{nil, {"thread"}, {"thread", "shwo"}, {"thread", "show", "--help"}, {"--help"}, {"help", "run"}} {
		assert.Equal(t, count(whole), count(a.rootFor(line)), "%v", line)
	}
}
