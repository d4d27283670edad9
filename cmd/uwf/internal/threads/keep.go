package threads

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/names"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a Commands) threadRemoveCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "rm", ArgsUsage: "<thread>", Usage: "delete a thread; its forks stay",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "yes", Aliases: []string{"y"}, Usage: "delete without prompting"},
			&ucli.BoolFlag{Name: "force", Usage: "also delete a worktree with work that exists nowhere else"}},
	}, a.threadRemove)
}

func (a Commands) threadRemove(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	show, err := view.Thread(ctx, e, id, false)
	if err != nil {
		return err
	}
	switch busy, err := e.Reader.Busy(ctx, id); {
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
	report, err := e.Files().Prune(ctx, prune.Options{Home: e.Reader.Dirs.Home, Now: a.Env.Now(), Threads: []string{id}}, true)
	if err := errors.Join(err, view.ForgetSummaries(e)); err != nil {
		return err
	}
	at := slices.IndexFunc(report.Pruned, func(e heads.Ended) bool { return e.Thread == id }) // children are removed as well
	if at < 0 {
		return isRunning(id)
	}
	return a.Printf(protocol.ThreadRemoved{Thread: id, Head: report.Pruned[at].Head, Removed: true}, "%s  removed\n", id)
}

// nothingUnsaved returns an error if the thread or a child has a worktree with unsaved work.
func nothingUnsaved(ctx context.Context, e *engine.Engine, id string) error {
	facts, err := e.Reader.Heads.AllFacts(ctx)
	if err != nil {
		return err
	}
	for member := range heads.Family(facts, []string{id}) {
		unsaved, err := e.Files().Unsaved(ctx, member, facts[member])
		if err != nil {
			if coded := (*protocol.Error)(nil); errors.As(err, &coded) {
				coded.Hints = append(coded.Hints, "to remove it and its files: uwf thread rm "+id+" --force")
			}
			return err
		}
		if unsaved.None() {
			continue
		}
		root := facts[member].Workspace.Root
		look := "to see them: git -C " + plaintext.Word(root) + " status"
		if len(unsaved.Files) > 0 {
			look = "to bring the files to your branch: uwf thread apply " + member
		}
		return &protocol.Error{Code: protocol.CodeFailed, Message: plaintext.Line("the worktree of thread " + member + " (" + root + ") has " + unsaved.String()),
			Hints: []string{look, "to remove it and its files: uwf thread rm " + id + " --force"}}
	}
	return nil
}

// isRunning returns the error for removing a running thread.
func isRunning(id string) error {
	return &protocol.Error{Code: protocol.CodeLocked, Message: "thread " + id + " is running", Hints: []string{"uwf thread stop " + id}}
}

// threadPruneCommand removes threads that ended long ago.
func (a Commands) threadPruneCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "prune", Usage: "delete old archived threads",
		Flags: []ucli.Flag{
			term.Number(ucli.StringFlag{Name: "keep-days", Required: true, Usage: "`N` keep threads that ended within this number of days"}, 0, 30),
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only print what would be deleted"},
			&ucli.BoolFlag{Name: "force", Usage: "also delete threads whose worktrees hold work that exists nowhere else"},
		},
	}, a.threadPrune)
}

func (a Commands) threadPrune(ctx context.Context, c *ucli.Context, e *engine.Engine) error {
	const most = 100_000 // a time.Duration holds no more days
	keep := time.Duration(min(term.NumberOf(c, "keep-days"), most)) * 24 * time.Hour
	o := prune.Options{Home: e.Reader.Dirs.Home, Keep: keep, DryRun: c.Bool("dry-run"), Now: a.Env.Now()}
	report, err := e.Files().Prune(ctx, o, c.Bool("force"))
	if err == nil && !o.DryRun {
		err = view.ForgetSummaries(e)
	}
	if err != nil {
		return err
	}
	return a.Print(report, func(w *term.Page) { printPrune(w, report) })
}

func printPrune(w *term.Page, r prune.Report) {
	for _, e := range r.Pruned {
		at := time.UnixMilli(e.CompletedAt).UTC().Format(time.DateOnly)
		status := plaintext.Line(string(e.Status))
		w.Printf("%s  %s %s, head %s\n", e.Thread, status, at, e.Head)
	}
	for _, thread := range r.Busy {
		w.Printf("%s  is busy: kept\n", thread)
	}
	for _, s := range r.Spared {
		w.Printf("%s  %s: kept\n", s.Thread, plaintext.Line(s.Reason))
	}
	verb, next := "forgot", "; "+app.CasProgram+" gc frees what they alone needed"
	if r.DryRun {
		verb, next = "would forget", ""
	}
	if len(r.Pruned) == 0 {
		next = ""
	}
	w.Printf("%s %s, kept %d%s\n", verb, render.Count(len(r.Pruned), "thread"), r.Kept, next)
}

func (a Commands) threadApplyCommand() *ucli.Command {
	return a.OnThread(ucli.Command{
		Name: "apply", ArgsUsage: "<thread>", Usage: "merge the worktree of a thread into your branch",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "branch", Usage: "`NAME` commit to this branch instead of merging; created if needed"},
			&ucli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "`TEXT` commit message (default the thread's title)"},
			&ucli.BoolFlag{Name: "dirty", Usage: "allow uncommitted changes in your work tree; they stay"},
			&ucli.StringFlag{Name: "cwd", Usage: "`DIR` work tree to merge into (default the current directory)"},
		},
	}, a.threadApply)
}

func (a Commands) threadApply(ctx context.Context, c *ucli.Context, e *engine.Engine, id string) error {
	dir, err := a.workDir(c.String("cwd"))
	if err != nil {
		return err
	}
	out, err := e.Files().Apply(ctx, id, worktree.ApplyOptions{Dir: dir, Branch: c.String("branch"), Message: c.String("message"), Dirty: c.Bool("dirty")})
	if err != nil {
		return err
	}
	if len(out.Left) > 0 {
		a.Warnf("the result lacks %s; only the worktree of thread %s has them", worktree.Abbreviate(out.Left), id)
	}
	if out.Root != "" {
		git := "git -C " + plaintext.Word(out.Root)
		a.Messagef("hint: %s add -A && %s commit", git, git)
	}
	return a.Print(out, func(w *term.Page) { appliedText(w, out) })
}

func appliedText(w *term.Page, out protocol.ThreadApplied) {
	what := "committed"
	if f := out.Files; out.Commit == "" && f != nil {
		w.Printf("the files are as after its last step: %d changed, %d new, %d removed\n", len(f.Changed), len(f.Added), len(f.Removed))
		return
	}
	if out.Root != "" {
		w.Printf("nothing to apply: the thread works in %s itself\n", plaintext.Line(out.Root))
		return
	}
	switch {
	case out.Already:
		what = "already up to date"
	case out.Merged:
		what = "merged"
	}
	w.Printf("%s  %s  %s\n", plaintext.Line(out.Branch), out.Commit[:min(len(out.Commit), 10)], what)
}

func (a Commands) threadWorktreesCommand() *ucli.Command {
	return a.WithEngine(ucli.Command{
		Name: "worktrees", Usage: "list or clean the worktrees of threads",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "clean", Usage: "delete worktrees that are not needed"}},
	}, a.threadWorktrees)
}

func (a Commands) threadWorktrees(ctx context.Context, c *ucli.Context, e *engine.Engine) error {
	list := e.Files().Worktrees
	if c.Bool("clean") {
		list = e.Files().Clean
	}
	all, err := list(ctx)
	if err != nil {
		return err
	}
	now := a.Env.Now()
	return a.Print(all, func(w *term.Page) {
		if len(all) == 0 {
			w.Printf("no worktrees\n")
			return
		}
		facts, _ := e.Reader.Heads.AllFacts(ctx) // without facts, IDs are not shortened
		t := term.NewTable("THREAD", "STATUS", "BASE", "AGE", "SIZE", "PATH", "")
		for _, tree := range all {
			thread, status := "-", string(tree.Status)
			if tree.Thread != "" {
				thread = names.Of(tree.Thread, facts)
			}
			t.Row(thread, cmp.Or(status, "-"), baseOf(tree), app.TimeText(&tree.CreatedAt, now), render.Size(tree.Bytes), tree.Path, remark(tree, c.Bool("clean")))
		}
		w.Table(t)
	})
}

// baseOf returns the branch of a worktree, or the commit on which it is based.
func baseOf(w protocol.Worktree) string {
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

// treeFlags returns the flags for the files of a new thread.
func treeFlags() []ucli.Flag {
	return []ucli.Flag{
		term.OneOf(ucli.StringFlag{Name: "workspace", Usage: "`MODE` where agents work: in-place (the default in a git work tree), worktree (a new git worktree) or none (in place, without snapshots)"},
			worktree.ModeInPlace, worktree.InWorktree, worktree.ModeNone),
		&ucli.StringFlag{Name: "base", Usage: "`COMMIT` start of the new worktree (default HEAD)", Action: forWorktree[string]},
		&ucli.BoolFlag{Name: "dirty", Usage: "copy uncommitted changes into the new worktree", Action: forWorktree[bool]},
	}
}

// forWorktree is the action of --base and --dirty.
func forWorktree[T any](c *ucli.Context, _ T) error {
	if c.String("workspace") != worktree.InWorktree {
		return cmdline.UsageError("--base and --dirty need --workspace worktree", "--workspace worktree")
	}
	if c.IsSet("base") && c.Bool("dirty") {
		return cmdline.UsageError("--base and --dirty cannot be used together", "uncommitted changes belong to HEAD")
	}
	return nil
}

// workspaceOptions converts the flags.
func workspaceOptions(c *ucli.Context) worktree.Options {
	return worktree.Options{Mode: cmp.Or(c.String("workspace"), worktree.ModeDefault), Base: c.String("base"), Dirty: c.Bool("dirty")}
}

// printWorktree prints the path of a new thread's worktree.
func (a Commands) printWorktree(ctx context.Context, e *engine.Engine, id string) {
	facts, err := e.Reader.Heads.Facts(ctx, id)
	if w := facts.Workspace; err == nil && w != nil && w.Mode == worktree.InWorktree {
		at := w.Base[:min(len(w.Base), 10)]
		if w.Branch != "" {
			at = "branch " + w.Branch + " at " + at
		}
		a.Messagef("worktree %s, %s", plaintext.Line(w.Root), plaintext.Line(at))
	}
}
