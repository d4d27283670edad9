package cli

import (
	"context"
	"errors"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/terminal"
)

func graphFormats() []string { return []string{"text", "mermaid", "dot", "svg", "json", "yaml"} }

func (a *app) workflowGraphCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "graph", Usage: "draw a workflow's graph", ArgsUsage: "<name|hash|file>",
		Description: "text is a tree that begins at $START: ↑ marks a role that is drawn above, ↓ one that\n" +
			"is drawn below. svg is a picture for a browser, mermaid for Markdown on GitHub and\n" +
			"elsewhere, dot for Graphviz; in them, ways back are dashed. json and yaml list nodes and\n" +
			"edges. A file is only read, not stored.\n\n" +
			"   uwf workflow graph solve-issue --format svg > solve-issue.svg",
		Flags: []ucli.Flag{formatFlag(graphFormats(), "text")},
	}, a.workflowGraph)
}

func (a *app) workflowGraph(ctx context.Context, c *ucli.Context) error {
	format, err := a.ownFormat(c, graphFormats())
	if err != nil {
		return err
	}
	def, err := a.workflows().Definition(ctx, c.Args().First())
	if err != nil {
		return err
	}
	g := diagram.Of(def.Workflow)
	if format == "json" || format == "yaml" {
		return a.print(g, nil)
	}
	out, err := draw(g, format, a.width())
	if err != nil {
		return err
	}
	if format == "text" {
		return a.inColours(a.env.Stdout, out, ofPicture)
	}
	_, err = io.WriteString(a.env.Stdout, out)
	return err
}

// draw makes a picture in a format; width is the terminal's.
func draw(g diagram.Graph, format string, width int) (string, error) {
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

// width is that of the terminal to which results go; 0 if they go elsewhere.
func (a *app) width() int {
	columns, _ := terminal.Size(a.env.Stdout)
	return columns
}
