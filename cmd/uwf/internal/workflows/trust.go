package workflows

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/terminal"
)

// trustOutput answers workflow trust.
type trustOutput struct {
	Name     string        `json:"name"`
	Hash     protocol.Hash `json:"hash"`
	Commands []string      `json:"commands"`
}

func (a Commands) workflowTrustCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "trust", ArgsUsage: "<workflow>", Usage: "confirm that the commands of a workflow may run",
		Description: "A workflow whose roles are commands runs them as you. One that came with a thread from elsewhere, or\n" +
			"that a project has in place of a registered one, runs only once you have confirmed its content. This\n" +
			"command prints what would run and asks.",
		Flags: []ucli.Flag{app.YesFlag()},
	}, func(ctx context.Context, c *ucli.Context) error {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return err
		}
		h, err := a.Workflows().Find(ctx, c.Args().First())
		if err != nil {
			return err
		}
		w, err := cas.Read[protocol.Workflow](ctx, e.Store, h)
		if err != nil {
			return err
		}
		commands, err := e.Origins().Commands(ctx, w)
		if err != nil {
			return err
		}
		out := trustOutput{Name: w.Name, Hash: h, Commands: commands}
		if out.Commands == nil {
			out.Commands = []string{}
		}
		what := "workflow " + w.Name + "  " + string(h)
		if err := a.Agree(ctx, c, what, commands, func() error { return e.Origins().Trust(ctx, h) }); err != nil {
			return err
		}
		return a.Print(out, func(wr io.Writer) error { return app.PrintAgreed(wr, what, commands) })
	})
}

// Trusting does something, and again if what stops it is a workflow, or the words of a
// thread, that the person at the terminal then confirms.
func (a Commands) Trusting(ctx context.Context, e *engine.Engine, do func() error) error {
	confirmed := ""
	for {
		err := do()
		var untrusted *engine.UntrustedError
		if !errors.As(err, &untrusted) || !terminal.Is(a.Env.Stdin) || !terminal.Is(a.Env.Stderr) || untrusted.Error() == confirmed {
			return err
		}
		confirmed = untrusted.Error()
		a.Say("%s", plaintext.Indent(confirmed))
		answer, asked := setup.Terminal{In: a.Env.Stdin, Out: a.Env.Stderr}.Line(ctx, "may they run, now and later? [y/N] ")
		if asked != nil || !slices.Contains([]string{"y", "yes"}, strings.ToLower(answer)) {
			return err
		}
		if untrusted.Thread != "" {
			err = e.Origins().TrustThread(ctx, untrusted.Thread)
		} else {
			err = e.Origins().Trust(ctx, untrusted.Workflow)
		}
		if err != nil {
			return err
		}
	}
}
