package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/util/render"
)

// casProgram is how hints name the store's commands.
const casProgram = "uwf cas"

// casCommand has the commands of the store: the same as the program ocas.
func (a *app) casCommand() *ucli.Command {
	return a.group(ucli.Command{
		Name: "cas", Usage: "inspect, check and clean the node store", Subcommands: a.storeCLI().Commands(),
	})
}

// threadPruneCommand is the store's prune: what it forgets are threads.
func (a *app) threadPruneCommand() *ucli.Command { return a.storeCLI().PruneCommand() }

// storeCLI are the store's commands, once.
func (a *app) storeCLI() *ocascli.CLI {
	if a.cas == nil {
		a.cas = &ocascli.CLI{
			Env: a.env, Program: casProgram, Dirs: a.dirs,
			Format: func() render.Format { return a.format(nil) },
			Place:  a.address,
		}
	}
	return a.cas
}
