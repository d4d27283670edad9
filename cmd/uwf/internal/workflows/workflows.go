package workflows

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/catalog"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Command is uwf workflow.
func (a Commands) Command() *ucli.Command {
	return a.Group(ucli.Command{
		Name: "workflow", Aliases: []string{"wf"}, Usage: "create, validate, register and inspect workflows",
		Subcommands: []*ucli.Command{
			a.Leaf(ucli.Command{
				Name: "put", Aliases: []string{"add"}, Usage: "validate a workflow file, store it, and register its name",
				ArgsUsage: "<file.yaml>", Flags: []ucli.Flag{YesFlag()},
			}, a.workflowPut),
			a.workflowNewCommand(),
			a.workflowImportCommand(),
			a.workflowValidateCommand(),
			a.workflowShowCommand(),
			a.workflowGraphCommand(),
			a.workflowDiffCommand(),
			a.Leaf(ucli.Command{
				Name: "list", Aliases: []string{"ls"}, Usage: "list the workflows of the project and the registry",
			}, a.workflowList),
			a.workflowTrustCommand(),
			a.workflowUpdateCommand(),
			a.workflowRemoveCommand(),
		},
	})
}

func (a Commands) workflowPut(ctx context.Context, c *ucli.Context) error {
	a.Takes, a.Yes = true, c.Bool("yes")
	put, err := a.Workflows().Put(ctx, c.Args().First())
	if err != nil {
		return err
	}
	a.Hint("uwf run %s -p '<task>'", plaintext.Word(put.Name))
	return a.Print(put, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  %s\n", put.Name, put.Hash)
		return err
	})
}

func (a Commands) workflowList(ctx context.Context, _ *ucli.Context) error {
	items, err := a.Workflows().List(ctx)
	if err != nil {
		return err
	}
	if len(items) == 0 {
		a.Hint("uwf workflow new <name>")
	}
	return a.Print(items, func(w io.Writer) error { return workflowsText(w, items) })
}

func workflowsText(w io.Writer, items []protocol.WorkflowItem) error {
	if len(items) == 0 {
		_, err := fmt.Fprintln(w, "there is no workflow yet")
		return err
	}
	t := term.NewTable("NAME", "ORIGIN", "FILE OR HASH")
	for _, it := range items {
		if it.Origin == catalog.OriginProject {
			t.Row(it.Name, "project", it.Path)
		} else {
			t.Row(it.Name, "registered", it.Hash)
		}
	}
	return t.Print(w)
}
