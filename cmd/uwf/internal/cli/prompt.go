package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
)

func (a commands) promptCommand() *ucli.Command {
	c := ucli.Command{
		Name: "prompt", Aliases: []string{"skill"}, Usage: "reference texts for people and agents",
		Subcommands: []*ucli.Command{a.Leaf(ucli.Command{
			Name: "list", Aliases: []string{"ls"}, Usage: "list the texts",
		}, a.promptList)},
	}
	for _, text := range guide.All() {
		c.Subcommands = append(c.Subcommands, a.Leaf(ucli.Command{
			Name: text.Name, Aliases: text.Aliases, Usage: text.About,
		}, func(context.Context, *ucli.Context) error {
			_, err := io.WriteString(a.Env.Stdout, text.Markdown)
			return err
		}))
	}
	return a.Group(c)
}

func (a commands) promptList(context.Context, *ucli.Context) error {
	for _, text := range guide.All() {
		if _, err := fmt.Fprintln(a.Env.Stdout, text.Name); err != nil {
			return err
		}
	}
	return nil
}
