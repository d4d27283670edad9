package threads

import (
	"context"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/cmd/uwf/internal/workflows"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/moderator/diagram"
	"github.com/united-workforce/uwf/protocol"
)

// threadGraphOutput answers thread graph in JSON: the graph with what the run has
// made of it, and the way in words.
type threadGraphOutput struct {
	Thread string                `json:"thread"`
	Status protocol.Status       `json:"status"`
	Path   []string              `json:"path"`  // the nodes, from $START
	Roles  []protocol.RoleTotals `json:"roles"` // in the order of the graph
	diagram.Graph
}

func (a Commands) threadGraphCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "graph", ArgsUsage: "<thread>", Usage: "draw the workflow's graph with the path that a thread took",
		Description: "×2 on an edge means that it was taken twice, and ◀ marks where the thread stands. A role that has\n" +
			"had its turn shows how often, and what it cost; one that children play, where these stand and how long they\n" +
			"have worked, counted if they are more than eight. In the pictures, what was not reached is pale.\n\n" +
			"   uwf thread graph @ --format svg > run.svg",
		Flags: []ucli.Flag{app.FormatFlag(workflows.GraphFormats(), "text")},
	}, a.threadGraph)
}

func (a Commands) threadGraph(ctx context.Context, c *ucli.Context) error {
	format, err := a.OwnFormat(c, workflows.GraphFormats())
	if err != nil {
		return err
	}
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	trace, err := view.TraceOf(ctx, e, id)
	if err != nil {
		return err
	}
	g := trace.Graph(view.Note)
	if format == "json" || format == "yaml" {
		return a.Print(threadGraphOutput{Thread: id, Status: trace.Status, Path: trace.Path(), Roles: trace.Roles(), Graph: g}, nil)
	}
	out, err := workflows.Draw(g, format, a.Width())
	if err != nil {
		return err
	}
	if format == "" || format == "text" {
		return a.InColours(a.Env.Stdout, out, term.OfGraph)
	}
	_, err = io.WriteString(a.Env.Stdout, out)
	return err
}
