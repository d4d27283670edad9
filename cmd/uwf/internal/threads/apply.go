package threads

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine/threadfiles"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

func (a Commands) threadApplyCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "apply", ArgsUsage: "<thread>", Usage: "merge what a thread has made in its worktree into your branch",
		Description: "It is committed, as the thread's worktree has it, on the branch that is checked out here, whose files\n" +
			"and index follow; merged, if that has gone on since. It is done whole or not at all: what conflicts, or\n" +
			"would be written over, is named, and nothing is changed. Nothing is signed and no hook runs.\n\n" +
			"   uwf thread apply @\n   uwf thread apply @ --branch fix-lexer",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "branch", Usage: "a branch `NAME` for the result, created if needed; no files are touched"},
			&ucli.StringFlag{Name: "message", Aliases: []string{"m"}, Usage: "the `TEXT` of the commit (default: the thread's title)"},
			&ucli.BoolFlag{Name: "dirty", Usage: "even if there are uncommitted changes here, which stay as they are"},
			&ucli.StringFlag{Name: "cwd", Usage: "`DIR` of the work tree for the result (default: here)"},
		},
	}, a.threadApply)
}

func (a Commands) threadApply(ctx context.Context, c *ucli.Context) error {
	id, e, err := a.ThreadAndEngine(ctx, c, nil)
	if err != nil {
		return err
	}
	dir, err := a.workDir(c.String("cwd"))
	if err != nil {
		return err
	}
	out, err := e.ThreadFiles().Apply(ctx, id, threadfiles.ApplyOptions{Dir: dir, Branch: c.String("branch"), Message: c.String("message"), Dirty: c.Bool("dirty")})
	if err != nil {
		return err
	}
	if len(out.Left) > 0 {
		a.Say("uwf: warning: the result is without %s: only the worktree of thread %s has what is there", workspace.Some(out.Left), id)
	}
	if out.Root != "" {
		git := "git -C " + plaintext.Word(out.Root)
		a.Say("hint: %s add -A && %s commit", git, git)
	}
	return a.Print(out, func(w io.Writer) error { return appliedText(w, out) })
}

func appliedText(w io.Writer, out protocol.ThreadApplied) error {
	what := "committed"
	if f := out.Files; out.Commit == "" && f != nil {
		_, err := fmt.Fprintf(w, "the files are as after its last step: %d changed, %d new, %d removed\n", len(f.Changed), len(f.Added), len(f.Removed))
		return err
	}
	if out.Root != "" {
		_, err := fmt.Fprintf(w, "%s has what the thread has made: it works there itself\n", plaintext.Line(out.Root))
		return err
	}
	switch {
	case out.Already:
		what = "had it already"
	case out.Merged:
		what = "merged"
	}
	_, err := fmt.Fprintf(w, "%s  %s  %s\n", plaintext.Line(out.Branch), out.Commit[:min(len(out.Commit), 10)], what)
	return err
}
