package threads

import (
	"context"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
)

// threadTrustOutput answers thread trust.
type threadTrustOutput struct {
	Thread   string   `json:"thread"`
	Trusted  bool     `json:"trusted"`
	Commands []string `json:"commands"` // of its workflow
}

func (a Commands) threadTrustCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "trust", ArgsUsage: "<thread>", Usage: "confirm that the commands of a thread from elsewhere may run",
		Description: "A thread from elsewhere brings a workflow, and inputs, answers and approvals of other people, from\n" +
			"which the words of its commands are made. The commands run only once you have confirmed the thread.\n" +
			"This command prints them and asks; the answer holds for the thread's children, too. After another\n" +
			"import uwf asks again.",
		Flags: []ucli.Flag{app.YesFlag()},
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		_, commands, err := e.Origins().ThreadCommands(ctx, id)
		if err != nil {
			return err
		}
		what := "thread " + id + " and its children"
		if err := a.Agree(ctx, c, what, commands, func() error { return e.Origins().TrustThread(ctx, id) }); err != nil {
			return err
		}
		out := threadTrustOutput{id, true, append([]string{}, commands...)}
		return a.Print(out, func(w io.Writer) error { return app.PrintAgreed(w, what, commands) })
	})
}
