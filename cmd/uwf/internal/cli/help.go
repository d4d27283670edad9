package cli

import (
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
	"github.com/united-workforce/uwf/util/cmdline"
)

// topLevel says under which heading of the help a command stands. Headings are sorted by
// their names.
func topLevel() map[string]string {
	return map[string]string{
		"run": doing, "tick": doing, "thread": doing, "workflow": doing, "inbox": doing, "stats": doing, "web": doing, "remote": sharing, "push": sharing, "pull": sharing, "fetch": sharing,
		"step": forAgents, "prompt": forAgents, "schema": forAgents,
		"bundle": keeping, "cas": keeping, "log": keeping, "import-original": keeping,
		"setup": settingUp, "doctor": settingUp, "config": settingUp, "completion": settingUp, "version": settingUp, "man": settingUp, "help": settingUp,
	}
}

const (
	doing     = "Do"
	sharing   = "Hand over"
	forAgents = "For agents and authors"
	keeping   = "Keep"
	settingUp = "Set up, and look up"
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
