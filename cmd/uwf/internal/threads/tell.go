package threads

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/protocol"
)

func (a Commands) threadTellCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "tell", Usage: "say something to the agent of a thread, also while it works", ArgsUsage: "<thread> <message>",
		Description: "Our own agents and Claude Code hear it while they work; others that keep a conversation before\n" +
			"their answer is taken. It is told once, and is part of the step.\n\n" +
			"   uwf thread tell @ 'Leave the parser alone'",
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		text, err := a.promptText(c.Args().Get(1))
		if err != nil {
			return err
		}
		if err := e.Tell(ctx, id, text); err != nil {
			return err
		}
		return a.Print(protocol.ThreadTold{Thread: id, Told: true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "thread %s: it will be told\n", id)
			return err
		})
	})
}
