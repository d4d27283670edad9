package cli

import (
	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/ocascli"
	"github.com/united-workforce/uwf/util/render"
)

// casCommand has the commands of the store: the same as the program ocas.
func (a *app) casCommand() *ucli.Command {
	a.cas = &ocascli.CLI{
		Env: a.env, Program: "uwf cas", Dirs: a.dirs,
		Format: func() render.Format { return a.format(nil) },
	}
	return a.group(ucli.Command{
		Name: "cas", Usage: "work with the nodes of the store directly, check it, clean it", Subcommands: a.cas.Commands(),
	})
}
