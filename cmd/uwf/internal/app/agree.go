package app

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/plaintext"
)

// YesFlag is --yes of a command that asks with [App.Agree].
func YesFlag() *ucli.BoolFlag {
	return &ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "confirm without being asked"}
}

// Agree shows the commands of a workflow or thread and asks whether they may run, then calls
// confirm. With --yes it does not ask.
func (a *App) Agree(ctx context.Context, c *ucli.Context, what string, commands []string, confirm func() error) error {
	if !c.Bool("yes") {
		a.Say("the commands of %s:\n  %s", plaintext.Line(what), plaintext.Indent(strings.Join(commands, "\n")))
		unasked := c.Command.HelpName + " " + c.Args().First() + " --yes"
		if err := a.Confirm(ctx, "may they run, now and later?", unasked); err != nil {
			return err
		}
	}
	return confirm()
}

// PrintAgreed is the result of such a command, for a person.
func PrintAgreed(w io.Writer, what string, commands []string) error {
	_, err := fmt.Fprintln(w, strings.Join(append([]string{"confirmed: " + what}, commands...), "\n  "))
	return err
}
