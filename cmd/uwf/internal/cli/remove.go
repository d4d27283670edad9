package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/setup"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
	"github.com/united-workforce/uwf/util/terminal"
)

func (a *app) threadRemoveCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "rm", ArgsUsage: "<thread>", Usage: "remove a thread for good; forks of it stay",
		Description: "A terminal asks first; elsewhere --yes says that it is meant. A thread that is running is not removed:\n" +
			"uwf thread stop. What only this thread used goes with the next uwf cas gc.",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&ucli.BoolFlag{Name: "force", Usage: "remove its worktree, too, if what is in it is nowhere else"}},
	}, a.threadRemove)
}

func (a *app) threadRemove(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.threadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	show, err := view.Thread(ctx, e, id, false)
	if err != nil {
		return err
	}
	switch busy, err := e.Busy(ctx, id); {
	case err != nil:
		return err
	case busy:
		return isRunning(id)
	}
	if !c.Bool("yes") {
		steps := ""
		if show.Totals != nil {
			steps = render.Count(show.Totals.Steps, "step")
		}
		what := "thread " + joined(id, string(show.Status), steps, titleText(show.Title, show.ForkedFrom))
		if err := a.confirm(ctx, "Remove "+what+" for good?", "uwf thread rm "+id+" --yes"); err != nil {
			return err
		}
	}
	facts, err := e.Heads.Facts(ctx, id)
	if err != nil {
		return err
	}
	if !c.Bool("force") {
		unsaved, err := e.Unsaved(ctx, id, facts.Workspace)
		if err != nil {
			return err
		}
		if unsaved != "" {
			return &protocol.Error{Code: protocol.CodeFailed, Message: "the worktree of thread " + id + ", " + plaintext.Line(facts.Workspace.Root) + ", has " + unsaved,
				Hints: []string{"git -C " + plaintext.Word(facts.Workspace.Root) + " commit -a keeps them", "uwf thread rm " + id + " --force removes them, too"}}
		}
	}
	if !show.Done {
		if err := e.Kill(ctx, id); err != nil {
			return err
		}
	}
	report, err := prune.Run(ctx, prune.Options{Home: e.Dirs.Home, Now: a.env.Now(), Threads: []string{id}})
	if err != nil {
		return err
	}
	at := slices.IndexFunc(report.Pruned, func(e heads.Ended) bool { return e.Thread == id }) // its children go along
	if at < 0 {
		return isRunning(id)
	}
	if err := e.DropFiles(ctx, id, facts.Workspace); err != nil {
		return err
	}
	return a.print(protocol.ThreadRemoved{Thread: id, Head: report.Pruned[at].Head, Removed: true}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  removed\n", id)
		return err
	})
}

// isRunning refuses to remove a thread that somebody works on.
func isRunning(id string) error {
	return &protocol.Error{Code: protocol.CodeLocked, Message: "thread " + id + " is running", Hints: []string{"uwf thread stop " + id}}
}

// confirm asks a person whether something is meant; script is how it is said without
// being asked.
func (a *app) confirm(ctx context.Context, question, script string) error {
	if !terminal.Is(a.env.Stdin) {
		return cmdline.UsageError("nobody can be asked here: "+question, script)
	}
	said, err := setup.Terminal{In: a.env.Stdin, Out: a.env.Stderr}.Line(ctx, plaintext.Line(question)+" [y/N] ")
	if err != nil {
		return err
	}
	if said = strings.ToLower(said); said != "y" && said != "yes" {
		return &protocol.Error{Code: protocol.CodeFailed, Message: "not done: the answer was no"}
	}
	return nil
}

func (a *app) workflowRemoveCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "rm", ArgsUsage: "<name>", Usage: "take a workflow's name out of the registry; its threads stay",
		Description: "A terminal asks first, unless --yes says that it is meant.",
		Flags:       []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"}},
	}, func(ctx context.Context, c *ucli.Context) error {
		x, err := a.index()
		if err != nil {
			return err
		}
		name := c.Args().First()
		if known, err := x.Workflow(ctx, name); err == nil && terminal.Is(a.env.Stdin) && !c.Bool("yes") { // scripts were never asked
			if err := a.confirm(ctx, fmt.Sprintf("Remove the name %s of workflow %s?", name, known), "uwf workflow rm "+plaintext.Word(name)+" --yes"); err != nil {
				return err
			}
		}
		h, err := x.Unregister(ctx, name)
		if errors.Is(err, heads.ErrNoWorkflow) {
			return cmdline.NotFound("no workflow is registered as "+plaintext.Line(name), "uwf workflow list")
		}
		if err != nil {
			return err
		}
		return a.print(protocol.WorkflowRemoved{Name: name, Hash: h, Removed: true}, func(w io.Writer) error {
			_, err := fmt.Fprintf(w, "%s  %s  removed\n", name, h)
			return err
		})
	})
}
