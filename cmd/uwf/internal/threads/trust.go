package threads

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"
)

// threadTrustOutput answers thread trust.
type threadTrustOutput struct {
	Thread  string `json:"thread"`
	Trusted bool   `json:"trusted"`
}

func (a Commands) threadTrustCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "trust", ArgsUsage: "<thread>", Usage: "confirm that the commands of a thread from elsewhere may run",
		Description: "An imported thread brings inputs, answers and approvals of others, and the words of commands are made\n" +
			"of them, be the workflow your own. So they run only once you have confirmed it for the thread: a terminal\n" +
			"shows the next command and asks, and here it is said, for its children\n" +
			"as well. Imported again, it is asked again.",
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		if err := e.TrustThread(ctx, id); err != nil {
			return err
		}
		return a.Print(threadTrustOutput{id, true}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, "confirmed: the commands of thread "+id+" and of its children, the next and later ones")
			return err
		})
	})
}
