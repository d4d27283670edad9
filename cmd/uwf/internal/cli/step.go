package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/steps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/threads"
)

// stepCommand holds what concerns one step, the original's later names for
// thread commands, and the plumbing for agents in other languages.
func (a commands) stepCommand() *ucli.Command {
	list := threads.New(a.App).History()
	list.Name, list.Aliases, list.Hidden = "list", []string{"ls"}, true
	fork := threads.New(a.App).Fork()
	fork.Hidden = true
	return a.Group(ucli.Command{
		Name: "step", Usage: "inspect a step, or make one from any language",
		Subcommands: []*ucli.Command{
			a.Reads(list),
			a.Reads(steps.New(a.App).Show()),
			a.Reads(steps.New(a.App).Read()),
			a.Reads(steps.New(a.App).Turns()),
			a.Reads(steps.New(a.App).Diff()),
			fork,
			steps.New(a.App).Prompt(),
			steps.New(a.App).Turn(),
			steps.New(a.App).Put(),
			steps.New(a.App).Extract(),
		},
	})
}
