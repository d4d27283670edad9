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
		"run": doing, "tick": doing, "thread": doing, "workflow": doing, "inbox": doing, "stats": doing, "web": doing,
		"step": forAgents, "prompt": forAgents, "schema": forAgents,
		"bundle": keeping, "cas": keeping, "log": keeping, "import-original": keeping,
		"setup": settingUp, "doctor": settingUp, "config": settingUp, "completion": settingUp, "version": settingUp, "man": settingUp, "help": settingUp,
	}
}

const (
	doing     = "Do"
	forAgents = "For agents and authors"
	keeping   = "Keep"
	settingUp = "Set up, and look up"
)

// ofThreads is topLevel for uwf thread.
func ofThreads() map[string]string {
	return map[string]string{
		"start": goingOn, "step": goingOn, "resume": goingOn, "tell": goingOn, "poke": goingOn, "fork": goingOn, "undo": goingOn, "redo": goingOn, "apply": goingOn, "replay": goingOn, "trust": goingOn,
		"title": keepingThreads, "export": keepingThreads, "import": keepingThreads, "seal": keepingThreads, "redact": keepingThreads,
		"rm": keepingThreads, "prune": keepingThreads, "salvage": keepingThreads,
		"show": looking, "list": looking, "steps": looking, "read": looking, "step-details": looking, "diff": looking, "bisect": looking, "graph": looking, "diagnose": looking,
		"wait": whileRunning, "watch": whileRunning, "running": whileRunning, "stop": whileRunning, "kill": whileRunning,
	}
}

const (
	goingOn        = "Begin and go on"
	keepingThreads = "Keep, move, remove"
	looking        = "Look"
	whileRunning   = "While it runs, and to end it"
)

// inGroups puts commands under headings.
func inGroups(commands []*ucli.Command, headings map[string]string) []*ucli.Command {
	for _, c := range commands {
		c.Category = headings[c.Name]
	}
	return commands
}

// helpCommand is help on commands, and on what concerns many of them.
func (a *app) helpCommand(root *ucli.App) *ucli.Command {
	help := cmdline.HelpCommand(root)
	help.ArgsUsage = "[topic|command…]"
	help.Description = "The topics are " + strings.Join(guide.Topics(), ", ") + "."
	ofCommands := help.Action
	help.Action = func(c *ucli.Context) error {
		if text, ok := guide.Topic(c.Args().First()); ok && c.Args().Len() == 1 {
			_, err := io.WriteString(a.env.Stdout, text)
			return err
		}
		return ofCommands(c)
	}
	return help
}
