package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

func (a *app) stepDiffCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "diff", ArgsUsage: "<step>", Usage: "show what a step changed in the files",
		Description: stepUsage + "\n\nWhat a person changed before the step is not shown. The patch can be applied by git.\n\n" +
			"   uwf step diff @-1 | git apply -R",
		Flags: []ucli.Flag{statFlag("only the names, with the lines added and removed")},
	}, a.stepDiff)
}

func statFlag(usage string) ucli.Flag { return &ucli.BoolFlag{Name: "stat", Usage: usage} }

// stepDiffOutput answers step diff.
type stepDiffOutput struct {
	Step   protocol.Hash `json:"step"`
	Before protocol.Tree `json:"before"`
	After  protocol.Tree `json:"after"`
	Files  []fileChange  `json:"files"`
	Left   []string      `json:"left,omitempty"` // paths that are not kept
	Note   string        `json:"note,omitempty"`
}

// fileChange is one file of it.
type fileChange struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // added, changed or removed
	Added   *int   `json:"added"`  // lines; null: it is no text
	Removed *int   `json:"removed"`
}

func (a *app) stepDiff(ctx context.Context, c *ucli.Context) error {
	h, _, err := a.stepNode(ctx, c.Args().First())
	if err != nil {
		return err
	}
	e, err := a.engine(ctx, nil)
	if err != nil {
		return err
	}
	kept, err := e.StepFiles(ctx, h)
	if err != nil {
		return err
	}
	list, err := kept.Changes(ctx)
	if err != nil {
		return err
	}
	out := stepDiffOutput{Step: h, Before: kept.Before, After: kept.After, Files: fileChanges(list), Left: kept.Left, Note: kept.Note}
	return a.printFiles(ctx, out, kept, list, c.Bool("stat"))
}

// printFiles prints what differs, as a patch unless a format is asked for.
func (a *app) printFiles(ctx context.Context, out any, kept engine.StepFiles, list []files.Change, stat bool) error {
	own := render.Text
	return render.Print(a.env.Stdout, a.format(&own), out, func(w io.Writer) error {
		if stat {
			_, err := io.WriteString(w, statText(list))
			return err
		}
		var patch bytes.Buffer
		if err := kept.Patch(ctx, &patch); err != nil {
			return err
		}
		_, err := w.Write(patch.Bytes())
		return err
	})
}

func fileChanges(list []files.Change) []fileChange {
	changes := make([]fileChange, len(list))
	for i, f := range list {
		changes[i] = fileChange{Path: strings.ToValidUTF8(f.Path, "\uFFFD"), Status: map[byte]string{'A': "added", 'D': "removed"}[f.Status]}
		if changes[i].Status == "" {
			changes[i].Status = "changed"
		}
		if f.Added >= 0 {
			changes[i].Added, changes[i].Removed = &f.Added, &f.Removed
		}
	}
	return changes
}

// statText is a line for each file.
func statText(list []files.Change) string {
	var b strings.Builder
	for _, f := range list {
		lines := "binary"
		if f.Added >= 0 {
			lines = fmt.Sprintf("+%d -%d", f.Added, f.Removed)
		}
		fmt.Fprintf(&b, "%c %-12s %s\n", f.Status, lines, plaintext.Line(f.Path))
	}
	return b.String()
}
