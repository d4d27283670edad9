package threads

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/cmd/uwf/internal/steps"
	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine/threaddiff"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/cmdline"
)

// threadDiffOutput answers thread diff.
type threadDiffOutput struct {
	Old protocol.Hash `json:"old"` // heads
	New protocol.Hash `json:"new"`
	threaddiff.Diff
}

func (a Commands) threadDiffCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diff", ArgsUsage: "<thread> <thread>",
		Usage: "compare two threads: the first step that differs, field by field",
		Description: "What took longer or cost more does not part two threads; what was asked, answered or delivered\n" +
			"does. <thread>@3 compares up to a step. Exit status 0: they are the same; 1: they differ.\n\n" +
			"   uwf thread diff @^ @ --files        # the files after the last step of each, as a patch",
		Flags: []ucli.Flag{&ucli.BoolFlag{Name: "files", Usage: "compare the files instead, as they were after the last step of each"},
			steps.StatFlag("with --files: only the names, with the lines added and removed")},
	}, a.threadDiff)
}

func (a Commands) threadDiff(ctx context.Context, c *ucli.Context) error {
	old, err := a.headOf(ctx, c.Args().Get(0))
	if err != nil {
		return err
	}
	new, err := a.headOf(ctx, c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool("files") {
		return a.filesDiff(ctx, old, new, c.Bool("stat"))
	}
	if c.Bool("stat") {
		return cmdline.UsageError("--stat is for files", "--files --stat")
	}
	s, err := a.Store(ctx)
	if err != nil {
		return err
	}
	d, err := threaddiff.Compare(ctx, s, old, new)
	if err != nil {
		return err
	}
	if !d.Equal {
		a.Status = protocol.CodeFailed
	}
	return a.Print(threadDiffOutput{Old: old, New: new, Diff: d}, func(w io.Writer) error {
		return a.InColours(w, fmt.Sprintf("--- %s\n+++ %s\n%s",
			a.spelled(ctx, c.Args().Get(0)), a.spelled(ctx, c.Args().Get(1)), threaddiff.Text(d)), term.OfDiff)
	})
}

// filesDiffOutput answers thread diff --files.
type filesDiffOutput struct {
	Old   protocol.Hash      `json:"old"` // heads
	New   protocol.Hash      `json:"new"`
	Equal bool               `json:"equal"`
	Files []steps.FileChange `json:"files"`
}

// filesDiff compares the files after two steps.
func (a Commands) filesDiff(ctx context.Context, old, new protocol.Hash, stat bool) error {
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	between, err := e.Files().FilesBetween(ctx, old, new)
	if err != nil {
		return err
	}
	list, err := between.Changes(ctx)
	if err != nil {
		return err
	}
	if len(list) > 0 {
		a.Status = protocol.CodeFailed
	}
	return steps.New(a.App).PrintFiles(ctx, filesDiffOutput{Old: old, New: new, Equal: len(list) == 0, Files: steps.FileChanges(list)}, between, list, stat)
}

// spelled is a thread or a place in one as it can still be read tomorrow: with
// the newest thread's id instead of its @.
func (a Commands) spelled(ctx context.Context, arg string) string {
	if !strings.HasPrefix(arg, app.Newest) {
		return arg
	}
	name, place := app.CutNewest(arg)
	id, err := a.Thread(ctx, name)
	if err != nil {
		return arg
	}
	if place == "" {
		return id
	}
	return id + "@" + place
}

// headOf is the head of a thread, or a step of one.
func (a Commands) headOf(ctx context.Context, arg string) (protocol.Hash, error) {
	if arg != app.Newest && strings.Contains(arg, "@") {
		return a.Address(ctx, arg)
	}
	id, err := a.Thread(ctx, arg)
	if err == nil {
		e, err := a.Engine(ctx, nil)
		if err != nil {
			return "", err
		}
		return e.Head(ctx, id)
	}
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeNotFound {
		if h, nodeErr := a.Node(ctx, arg); nodeErr == nil { // of a thread that is no more
			return h, nil
		}
	}
	return "", err
}
