package cli

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/guide"
)

func (a commands) guideCommand() *ucli.Command {
	c := ucli.Command{
		Name: "guide", Aliases: []string{"skill", "prompt"}, Usage: "print guides for people and agents",
		Subcommands: []*ucli.Command{a.Leaf(ucli.Command{
			Name: "list", Aliases: []string{"ls"}, Usage: "list the guides",
		}, a.guideList)},
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

func (a commands) guideList(context.Context, *ucli.Context) error {
	for _, text := range guide.All() {
		if _, err := fmt.Fprintln(a.Env.Stdout, text.Name); err != nil {
			return err
		}
	}
	return nil
}
