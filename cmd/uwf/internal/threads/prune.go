package threads

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// threadPruneCommand forgets threads that ended long ago.
func (a Commands) threadPruneCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "prune", Usage: "forget archived threads, so that gc can free what only they use; active threads stay",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "keep-days", Required: true, Usage: "keep threads that ended within `N` days"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only show what would be forgotten"},
			&ucli.BoolFlag{Name: "force", Usage: "also forget threads whose worktrees hold work that exists nowhere else"},
		},
	}, a.threadPrune)
}

func (a Commands) threadPrune(ctx context.Context, c *ucli.Context) error {
	days, err := strconv.Atoi(c.String("keep-days"))
	const tooMany = 100_000 // more than a time can hold
	if err != nil || days < 0 || days > tooMany {
		return cmdline.UsageError(fmt.Sprintf("--keep-days %q is not a number of days", c.String("keep-days")),
			"--keep-days 30; 0 keeps none")
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	keep := time.Duration(days) * 24 * time.Hour
	o := prune.Options{Home: e.Dirs.Home, Keep: keep, DryRun: c.Bool("dry-run"), Now: a.Env.Now()}
	report, err := e.ThreadFiles().Prune(ctx, o, c.Bool("force"))
	if err != nil {
		return err
	}
	return a.Print(report, func(w io.Writer) error { return printPrune(w, report) })
}

func printPrune(w io.Writer, r prune.Report) error {
	for _, e := range r.Pruned {
		at := time.UnixMilli(e.CompletedAt).UTC().Format(time.DateOnly)
		status := plaintext.Line(string(e.Status))
		if _, err := fmt.Fprintf(w, "%s  %s %s, head %s\n", e.Thread, status, at, e.Head); err != nil {
			return err
		}
	}
	for _, thread := range r.Busy {
		if _, err := fmt.Fprintf(w, "%s  is busy: kept\n", thread); err != nil {
			return err
		}
	}
	for _, s := range r.Spared {
		if _, err := fmt.Fprintf(w, "%s  %s: kept\n", s.Thread, plaintext.Line(s.Why)); err != nil {
			return err
		}
	}
	verb, next := "forgot", "; "+app.CasProgram+" gc frees what they alone needed"
	if r.DryRun {
		verb, next = "would forget", ""
	}
	if len(r.Pruned) == 0 {
		next = ""
	}
	_, err := fmt.Fprintf(w, "%s %s, kept %d%s\n", verb, render.Count(len(r.Pruned), "thread"), r.Kept, next)
	return err
}
