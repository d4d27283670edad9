package steps

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

// Turn is uwf step turn.
func (a Commands) Turn() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "turn", Usage: "for agents: store a turn as it happens, and announce it",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "role", Usage: "who speaks: system, user, assistant or tool", Value: string(protocol.TurnAssistant)},
			&ucli.StringFlag{Name: "content", Usage: "`FILE` with the turn's text; - is stdin", Required: true},
			&ucli.StringFlag{Name: "tool-calls", Usage: `what the model asks for, as JSON: [{"id":…,"name":…,"args":…}]`},
			&ucli.StringFlag{Name: "tool-call-id", Usage: "the `ID` of the tool call that this turn answers"},
		},
	}, a.stepTurn)
}

func (a Commands) stepTurn(ctx context.Context, c *ucli.Context) error {
	as, err := a.assignment(ctx)
	if err != nil {
		return err
	}
	content, err := a.readInput(c.String("content"))
	if err != nil {
		return err
	}
	turn := protocol.Turn{
		Role: protocol.TurnRole(c.String("role")), Content: a.Secrets().Hide(content),
		ToolCallID: c.String("tool-call-id"), AtMs: a.Env.Now().UnixMilli(),
	}
	if v := c.String("tool-calls"); v != "" {
		if err := strictJSON([]byte(a.Secrets().Hide(v)), &turn.ToolCalls); err != nil {
			return cmdline.Invalid(fmt.Sprintf("--tool-calls: %v", err))
		}
	}
	earlier, err := as.announced(ctx)
	if err != nil {
		return err
	}
	turn.Index = len(earlier)
	if err := turn.Validate(); err != nil {
		return cmdline.UsageError(err.Error())
	}
	return a.putTurn(ctx, turn)
}

// putTurn makes the turn readable at once. It becomes durable with its step.
func (a Commands) putTurn(ctx context.Context, turn protocol.Turn) error {
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	b := cas.NewBatch(s, a.Env.Now)
	h, err := step.AddTurn(ctx, b, turn)
	if err != nil {
		return err
	}
	if err := b.Put(ctx); err != nil {
		return err
	}
	return render.Print(a.Env.Stdout, render.JSON, protocol.NewTurnLine(h), nil)
}

// readInput reads a file that an agent names, or stdin for "-".
func (a Commands) readInput(name string) (string, error) {
	if name == "-" {
		data, err := io.ReadAll(a.Env.Stdin)
		if err != nil {
			return "", fmt.Errorf("read stdin: %w", err)
		}
		return string(data), nil
	}
	data, err := os.ReadFile(a.Env.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return "", cmdline.NoFile(a.Env.Dir, name, "- reads stdin")
	}
	if err != nil {
		return "", cmdline.NotFound(fmt.Sprintf("cannot read %s: %v", name, err))
	}
	return string(data), nil
}
