package workflows

import (
	"context"
	"errors"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/util/cmdline"
)

// GraphFormats are those of uwf workflow graph.
func GraphFormats() []string { return []string{"text", "mermaid", "dot", "svg", "json", "yaml"} }

func (a Commands) workflowGraphCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "graph", Usage: "draw a workflow's graph", ArgsUsage: "<name|hash|file>",
		Description: "text is a tree that begins at $START: ↑ marks a role that is drawn above, ↓ one that\n" +
			"is drawn below. svg is a picture for a browser, mermaid for Markdown on GitHub and\n" +
			"elsewhere, dot for Graphviz; in them, ways back are dashed. json and yaml list nodes and\n" +
			"edges. A file is only read, not stored.\n\n" +
			"   uwf workflow graph solve-issue --format svg > solve-issue.svg",
		Flags: []ucli.Flag{app.FormatFlag(GraphFormats(), "text")},
	}, a.workflowGraph)
}

func (a Commands) workflowGraph(ctx context.Context, c *ucli.Context) error {
	format, err := a.OwnFormat(c, GraphFormats())
	if err != nil {
		return err
	}
	def, err := a.Workflows().Definition(ctx, c.Args().First())
	if err != nil {
		return err
	}
	g := diagram.Of(def.Workflow)
	if format == "json" || format == "yaml" {
		return a.Print(g, nil)
	}
	out, err := Draw(g, format, a.Width())
	if err != nil {
		return err
	}
	if format == "text" {
		return a.InColours(a.Env.Stdout, out, term.OfPicture)
	}
	_, err = io.WriteString(a.Env.Stdout, out)
	return err
}

// Draw makes a picture in a format; width is the terminal's.
func Draw(g diagram.Graph, format string, width int) (string, error) {
	switch format {
	case "mermaid":
		return g.Mermaid(), nil
	case "dot":
		return g.DOT(), nil
	case "svg":
		svg, err := g.SVG()
		if errors.Is(err, diagram.ErrTooLarge) {
			return "", cmdline.Invalid(err.Error(), "--format text or --format dot can show it")
		}
		return svg, err
	}
	return g.Text(width), nil
}
