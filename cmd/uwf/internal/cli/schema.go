package cli

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/suggest"
)

func (a commands) schemaCommand() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "schema", Usage: "the schemas of what uwf stores, and of the files people write",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "hash", ArgsUsage: "<kind>",
				Usage: "print the hash of a kind's schema in this store: " + kindNames(),
			}, a.schemaHash),
			a.Leaf(ucli.Command{
				Name: "show", ArgsUsage: "<kind>", Usage: "print a kind's JSON Schema",
			}, a.schemaShow),
			a.Leaf(ucli.Command{
				Name: "workflow", Usage: "print a JSON Schema for editors of workflow files",
				Description: "uwf schema workflow > workflow.schema.json, and as first line of the workflow:\n" +
					"# yaml-language-server: $schema=workflow.schema.json",
			}, a.editorSchema(protocol.EditWorkflow)),
			a.Leaf(ucli.Command{
				Name: "config", Usage: "print a JSON Schema for editors of config.yaml",
			}, a.editorSchema(protocol.EditConfig)),
		},
	})
}

func kindNames() string {
	return strings.Join(typeNames(), ", ")
}

func typeNames() (names []string) {
	for _, t := range protocol.Types() {
		names = append(names, t.String())
	}
	return names
}

func typeOf(word string) (protocol.Type, error) {
	word = strings.TrimPrefix(word, protocol.TitlePrefix)
	t, ok := protocol.ParseType(word)
	if ok && t.Known() {
		return t, nil
	}
	hints := []string{"one of " + kindNames()}
	if near := suggest.Nearest(word, typeNames(), 1); len(near) > 0 {
		hints = append([]string{"did you mean " + near[0] + "?"}, hints...)
	}
	return t, cmdline.NotFound(fmt.Sprintf("no such kind: %s", word), hints...)
}

func (a commands) schemaHash(ctx context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	h := s.Kinds().Schema(t).Hash
	return a.Print(map[string]any{"kind": t.Kind, "version": t.Version, "title": t.Title(), "hash": h}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, h)
		return err
	})
}

func (a commands) schemaShow(_ context.Context, c *ucli.Context) error {
	t, err := typeOf(c.Args().First())
	if err != nil {
		return err
	}
	_, err = a.Env.Stdout.Write(protocol.SchemaJSON(t))
	return err
}

func (a commands) editorSchema(f protocol.EditorFile) func(context.Context, *ucli.Context) error {
	return func(context.Context, *ucli.Context) error {
		_, err := a.Env.Stdout.Write(protocol.EditorSchema(f))
		return err
	}
}
