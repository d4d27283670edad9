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
		Name: "message", Usage: "send a message to the agent of a thread, also while it works", ArgsUsage: "<thread> <message>",
		Description: "Our own agents and Claude Code read it while they work; others that keep a conversation, before\n" +
			"their answer is taken. It is delivered once, and is part of the step.\n\n" +
			"   uwf thread message @ 'Leave the parser alone'",
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
		return a.Print(protocol.ThreadMessage{Thread: id, Queued: true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "thread %s: message queued\n", id)
			return err
		})
	})
}
