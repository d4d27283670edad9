package threads

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadBisectCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "bisect", ArgsUsage: "<good> <bad> <command…>", Usage: "find the step after which a command fails",
		Description: "Both are steps of one thread; number 0 is the start. The command is started without a shell with the files of\n" +
			"the steps in between, in a worktree that is made for it, at this place below its root, and removed again.\n" +
			"Exit status 0 of the command: the files are good; 125: it cannot tell; 126 and 127 end the search; any other: " +
			"they are\nbad.\n\n" +
			"   uwf thread bisect @0 @-1 -- make test\n   uwf thread bisect @3 @ -- sh -c 'go build && ./check'",
	}, a.threadBisect)
}

func (a Commands) threadBisect(ctx context.Context, c *ucli.Context) error {
	argv := c.Args().Slice()[2:]
	good, err := a.headOf(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	bad, err := a.headOf(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	o := workspace.BisectOptions{Argv: argv, Told: func(s protocol.BisectedStep) { a.Say("step %s: %s", bisectedText(s), s.Result) }}
	o.Out, _ = a.Env.Stderr.(*os.File)
	if a.Flags.Quiet {
		o.Out = nil
	}
	out, err := e.Files().Bisect(ctx, good, bad, o)
	if err != nil {
		return err
	}
	if n := len(out.Unsure); n > 0 {
		a.Say("uwf: %s before it could not be tried: one of them may be the first", render.Count(n, "step"))
	}
	a.Hint("uwf step diff %s", out.First.Step)
	return a.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  step %s\n", out.First.Step, bisectedText(out.First))
		return err
	})
}

// bisectedText is a step with its number and role.
func bisectedText(s protocol.BisectedStep) string {
	if s.Number == 0 {
		return "0 (the start)"
	}
	return strings.TrimSpace(fmt.Sprintf("%d (%s)", s.Number, plaintext.Line(s.Role)))
}
