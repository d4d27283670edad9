package cli

import (
	"testing"

	"github.com/stretchr/testify/assert"
	ucli "github.com/urfave/cli/v2"

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
