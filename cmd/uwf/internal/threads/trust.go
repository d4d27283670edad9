package threads

import (
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"
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
		Description: "A thread from elsewhere brings a workflow, and inputs, answers and approvals of others, of which the words\n" +
			"of commands are made. They run only once you have confirmed it for the thread: a terminal shows the\n" +
			"commands and asks, and here it is said, for its children as well. uwf workflow show, and the list that\n" +
			"this prints, say what they are. Imported again, it is asked again.",
	}, func(ctx context.Context, c *ucli.Context) error {
		id, e, err := a.ThreadAndEngine(ctx, c, nil)
		if err != nil {
			return err
		}
		commands, err := e.TrustThread(ctx, id)
		if err != nil {
			return err
		}
		return a.Print(threadTrustOutput{id, true, append([]string{}, commands...)}, func(w io.Writer) error {
			_, err := fmt.Fprintln(w, strings.Join(append([]string{"confirmed: the commands of thread " + id + " and of its children, the next and later ones"}, commands...), "\n  "))
			return err
		})
	})
}
