package workflows

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
)

// diffOutput answers workflow diff.
type diffOutput struct {
	Equal   bool                  `json:"equal"`
	Changes []workflowdiff.Change `json:"changes"`
}

func (a Commands) workflowDiffCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diff", Usage: "compare two workflows: roles, schemas, edges, conditions, limits",
		ArgsUsage: "<name|hash|file> <name|hash|file>",
		Description: "Exit status 0: they are the same; 1: they differ. The order in which a file is written\n" +
			"does not matter. Files are only read, not stored.\n\n" +
			"   uwf workflow diff solve-issue ./solve-issue.yaml   # what would put change?",
	}, a.workflowDiff)
}

func (a Commands) workflowDiff(ctx context.Context, c *ucli.Context) error {
	before, err := a.Workflows().Definition(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	after, err := a.Workflows().Definition(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	changes := workflowdiff.Compare(before, after)
	if len(changes) > 0 {
		a.Status = protocol.CodeFailed
	}
	return a.Print(diffOutput{Equal: len(changes) == 0, Changes: changes}, func(w io.Writer) error {
		if len(changes) == 0 {
			return nil
		}
		return a.InColours(w, fmt.Sprintf("--- %s\n+++ %s\n%s", c.Args().Get(0), c.Args().Get(1), workflowdiff.Text(changes)), term.OfDiff)
	})
}
