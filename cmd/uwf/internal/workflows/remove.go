package workflows

import (
	"context"
	"errors"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a Commands) workflowRemoveCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "rm", ArgsUsage: "<name>", Usage: "take a workflow's name out of the registry; its threads stay",
		Description: "A terminal asks first, unless --yes says that it is meant.",
		Flags:       []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
	}, func(ctx context.Context, c *ucli.Context) error {
		x, err := a.Index()
		if err != nil {
			return err
		}
		name := c.Args().First()
		if known, err := x.Workflow(ctx, name); err == nil && terminal.Is(a.Env.Stdin) && !c.Bool("yes") { // scripts were never asked
			if err := a.Confirm(ctx, fmt.Sprintf("Remove the name %s of workflow %s?", name, known), "uwf workflow rm "+plaintext.Word(name)+" --yes"); err != nil {
				return err
			}
		}
		h, err := x.Unregister(ctx, name)
		if errors.Is(err, heads.ErrNoWorkflow) {
			return cmdline.NotFound("no workflow is registered as "+plaintext.Line(name), "uwf workflow list")
		}
		if err != nil {
			return err
		}
		return a.Print(protocol.WorkflowRemoved{Name: name, Hash: h, Removed: true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s  %s  removed\n", name, h)
			return err
		})
	})
}
