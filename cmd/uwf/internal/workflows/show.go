package workflows

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) workflowShowCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "show", Usage: "print a workflow as it is stored", ArgsUsage: "<name|hash|file>",
		Description: "As yaml or text, the workflow is a file that can be put again and is then the same\n" +
			"workflow; roles stand in the order of the graph. As json, it is the stored node:\n" +
			"{hash, name, type, payload, timestamp}.",
		Flags: []ucli.Flag{app.FormatFlag(render.Formats(), "text on a terminal, else json")},
	}, a.workflowShow)
}

func (a Commands) workflowShow(ctx context.Context, c *ucli.Context) error {
	if _, err := a.OwnFormat(c, render.Formats()); err != nil {
		return err
	}
	h, err := a.Workflows().Find(ctx, c.Args().First())
	if err != nil {
		return err
	}
	if f := a.Format(nil); f != render.JSON {
		return a.showSource(ctx, h, f)
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	n, err := s.Get(ctx, h)
	if err != nil {
		return err
	}
	payload, err := n.Value()
	if err != nil {
		return err
	}
	show := protocol.WorkflowShow{Hash: h, Type: n.Type, Payload: payload, Timestamp: n.Timestamp, Name: app.Ref(a.Workflows().Name(ctx, h))}
	return a.Print(show, nil)
}

// showSource prints a workflow as a file. For a person its first line says
// which workflow it is; it is a comment, so that the text can still be put.
func (a Commands) showSource(ctx context.Context, h cas.Hash, f render.Format) error {
	def, err := a.Workflows().Stored(ctx, h)
	if err != nil {
		return err
	}
	text, err := workflowtext.YAML(def)
	if err != nil {
		return err
	}
	if f == render.Text {
		if err := a.showHead(ctx, a.Env.Stdout, h); err != nil {
			return err
		}
	}
	_, err = a.Env.Stdout.Write(text)
	return err
}

func (a Commands) showHead(ctx context.Context, w io.Writer, h cas.Hash) error {
	registered := ""
	if name := a.Workflows().Name(ctx, h); name != "" {
		registered = ", registered as " + name
	}
	_, err := fmt.Fprintf(w, "# workflow %s%s\n", h, registered)
	return err
}
