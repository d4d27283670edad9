package threads

import (
	"cmp"
	"context"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadWorktreesCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "worktrees", Usage: "list the worktrees of threads: whose, from where, how old, how large",
		Description: "--clean removes those of threads that have ended, and those that no thread has, unless something in them is\n" +
			"nowhere else; what git ignores goes. What was made stays with the thread: uwf thread apply and uwf thread fork\n" +
			"still have it, and a thread that goes on has its worktree again.",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "clean", Usage: "remove those that are not needed"}},
	}, a.threadWorktrees)
}

func (a Commands) threadWorktrees(ctx context.Context, c *ucli.Context) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	list := e.ThreadFiles().Worktrees
	if c.Bool("clean") {
		list = e.ThreadFiles().Clean
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	now := a.Env.Now()
	return a.Print(all, func(w io.Writer) error {
		if len(all) == 0 {
			_, err := io.WriteString(w, "no worktrees\n")
			return err
		}
		facts, _ := e.Heads.AllFacts(ctx) // without them ids are whole
		t := term.NewTable("thread", "status", "began at", "made", "size", "path", "").InColour(cmdline.Colours(a.Env, w))
		for _, tree := range all {
			thread, status := "-", string(tree.Status)
			if tree.Thread != "" {
				thread = app.Named(tree.Thread, facts)
			}
			t.Row(thread, cmp.Or(status, "-"), beganAt(tree), app.Started(&tree.CreatedAt, now), render.Size(tree.Bytes), tree.Path, remark(tree, c.Bool("clean")))
		}
		return t.Print(w)
	})
}

// beganAt is the branch of a worktree, or the commit it began with.
func beganAt(w protocol.Worktree) string {
	return cmp.Or(w.Branch, w.Base[:min(len(w.Base), 10)], "-")
}

func remark(w protocol.Worktree, cleaned bool) string {
	switch {
	case w.Stays != "":
		return "kept: " + w.Stays
	case cleaned:
		return "removed"
	case w.Gone:
		return "is gone"
	}
	return ""
}
