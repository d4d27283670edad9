package cli

import (
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/util/cmdline"
)

// helpCommand is help on commands, and on what concerns many of them.
func (a commands) helpCommand(root *ucli.App) *ucli.Command {
	help := cmdline.HelpCommand(root)
	help.ArgsUsage = "[topic|command…]"
	help.Description = "The topics are " + strings.Join(guide.Topics(), ", ") + "."
	ofCommands := help.Action
	help.Action = func(c *ucli.Context) error {
		if text, ok := guide.Topic(c.Args().First()); ok && c.Args().Len() == 1 {
			_, err := io.WriteString(a.Env.Stdout, text)
			return err
		}
		return ofCommands(c)
	}
	return help
}
