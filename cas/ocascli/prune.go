package ocascli

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

// PruneCommand forgets threads that ended long ago. uwf has it among the commands
// of threads, too.
func (c *CLI) PruneCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "prune", Usage: "forget archived threads, so that gc can free what only they use; active threads stay",
		Flags: []ucli.Flag{
			&ucli.StringFlag{Name: "keep-days", Required: true, Usage: "keep threads that ended within `N` days"},
			&ucli.BoolFlag{Name: "dry-run", Aliases: []string{"n"}, Usage: "only show what would be forgotten"},
			&ucli.BoolFlag{Name: "force", Usage: "also forget threads whose worktrees hold work that exists nowhere else"},
		},
	}, c.prune)
}

func (c *CLI) prune(ctx context.Context, cc *ucli.Context) error {
	days, err := strconv.Atoi(cc.String("keep-days"))
	const tooMany = 100_000 // more than a time can hold
	if err != nil || days < 0 || days > tooMany {
		return cmdline.UsageError(fmt.Sprintf("--keep-days %q is not a number of days", cc.String("keep-days")), "--keep-days 30; 0 keeps none")
	}
	dirs, err := c.Dirs()
	if err != nil {
		return err
	}
	if err := fsstore.Readable(dirs.Store); err != nil {
		return StoreError(err, c.Program) // the home, too, is a newer program's
	}
	o := prune.Options{Home: dirs.Home, Keep: time.Duration(days) * 24 * time.Hour, DryRun: cc.Bool("dry-run"), Now: c.Env.Now()}
	run := prune.Run
	if c.Prune != nil {
		run = func(ctx context.Context, o prune.Options) (prune.Report, error) {
			return c.Prune(ctx, o, cc.Bool("force"))
		}
	}
	report, err := run(ctx, o)
	if err != nil {
		return err
	}
	return c.print(report, func(w io.Writer) error { return printPrune(w, report, c.Program) })
}

func printPrune(w io.Writer, r prune.Report, program string) error {
	for _, e := range r.Pruned {
		at := time.UnixMilli(e.CompletedAt).UTC().Format(time.DateOnly)
		if _, err := fmt.Fprintf(w, "%s  %s %s, head %s\n", e.Thread, plaintext.Line(string(e.Status)), at, e.Head); err != nil {
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
	verb, next := "forgot", "; "+program+" gc frees what they alone needed"
	if r.DryRun {
		verb, next = "would forget", ""
	}
	if len(r.Pruned) == 0 {
		next = ""
	}
	threads := "threads"
	if len(r.Pruned) == 1 {
		threads = "thread"
	}
	_, err := fmt.Fprintf(w, "%s %d %s, kept %d%s\n", verb, len(r.Pruned), threads, r.Kept, next)
	return err
}
