package cli

import (
	ucli "github.com/urfave/cli/v2"
)

// casCommand has the commands of the store: the same as the program ocas.
func (a commands) casCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "cas", Usage: "inspect, check and clean the node store", Subcommands: a.StoreCLI().Commands(),
	})
}
