package threads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadRemoveCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "rm", ArgsUsage: "<thread>", Usage: "remove a thread for good; forks of it stay",
		Description: "A terminal asks first; elsewhere --yes says that it is meant. A thread that is running is not removed:\n" +
			"uwf thread stop. What only this thread used goes with the next uwf cas gc.",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "do not ask"},
			&ucli.BoolFlag{Name: "force", Usage: "also remove its worktree if it holds work that exists nowhere else"}},
	}, a.threadRemove)
}

func (a Commands) threadRemove(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
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
		what := "thread " + term.Joined(id, string(show.Status), steps, app.TitleText(show.Title, show.ForkedFrom))
		if err := a.Confirm(ctx, "Remove "+what+" for good?", "uwf thread rm "+id+" --yes"); err != nil {
			return err
		}
	}
	if !c.Bool("force") {
		if err := nothingUnsaved(ctx, e, id); err != nil {
			return err
		}
	}
	if !show.Done {
		if err := e.Kill(ctx, id); err != nil {
			return err
		}
	}
	report, err := e.ThreadFiles().Prune(ctx, prune.Options{Home: e.Dirs.Home, Now: a.Env.Now(), Threads: []string{id}}, true)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(report.Pruned, func(e heads.Ended) bool { return e.Thread == id }) // its children go along
	if at < 0 {
		return isRunning(id)
	}
	return a.Print(protocol.ThreadRemoved{Thread: id, Head: report.Pruned[at].Head, Removed: true}, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s  removed\n", id)
		return err
	})
}

// nothingUnsaved refuses to remove a thread if it, or a child of it, has a worktree with
// work that is nowhere else.
func nothingUnsaved(ctx context.Context, e *engine.Engine, id string) error {
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil {
		return err
	}
	for member := range heads.Family(facts, []string{id}) {
		unsaved, err := e.ThreadFiles().Unsaved(ctx, member, facts[member])
		if err != nil {
			if coded := (*protocol.Error)(nil); errors.As(err, &coded) {
				coded.Hints = append(coded.Hints, "uwf thread rm "+id+" --force removes it, whatever is in it")
			}
			return err
		}
		if unsaved.None() {
			continue
		}
		root := facts[member].Workspace.Root
		look := "git -C " + plaintext.Word(root) + " status shows what is there"
		if len(unsaved.Files) > 0 {
			look = "uwf thread apply " + member + " brings the files to your branch"
		}
		return &protocol.Error{Code: protocol.CodeFailed, Message: plaintext.Line("the worktree of thread " + member + ", " + root + ", has " + unsaved.String()),
			Hints: []string{look, "uwf thread rm " + id + " --force removes it, too"}}
	}
	return nil
}

// isRunning refuses to remove a thread that somebody works on.
func isRunning(id string) error {
	return &protocol.Error{Code: protocol.CodeLocked, Message: "thread " + id + " is running", Hints: []string{"uwf thread stop " + id}}
}
