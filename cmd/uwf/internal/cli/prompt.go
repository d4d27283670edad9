package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
)

func (a *app) promptCommand() *ucli.Command {
	c := ucli.Command{
		Name: "prompt", Aliases: []string{"skill"}, Usage: "reference texts for people and agents",
		Subcommands: []*ucli.Command{a.leaf(ucli.Command{
			Name: "list", Aliases: []string{"ls"}, Usage: "list the texts",
		}, a.promptList)},
	}
	for _, text := range guide.All() {
		c.Subcommands = append(c.Subcommands, a.leaf(ucli.Command{
			Name: text.Name, Aliases: text.Aliases, Usage: text.About,
		}, func(context.Context, *ucli.Context) error {
			_, err := io.WriteString(a.env.Stdout, text.Markdown)
			return err
		}))
	}
	return a.group(c)
}

func (a *app) promptList(context.Context, *ucli.Context) error {
	for _, text := range guide.All() {
		if _, err := fmt.Fprintln(a.env.Stdout, text.Name); err != nil {
			return err
		}
	}
	return nil
}
