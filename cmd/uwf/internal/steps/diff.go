package steps

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/app"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/render"
)

// Diff is uwf step diff.
func (a Commands) Diff() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "diff", ArgsUsage: "<step>", Usage: "show what a step changed in the files",
		Description: app.StepUsage + "\n\nWhat a person changed before the step is not shown. The patch can be applied by git.\n\n" +
			"   uwf step diff @-1 | git apply -R",
		Flags: []ucli.Flag{StatFlag("only the names, with the lines added and removed")},
	}, a.stepDiff)
}

// StatFlag asks for a table in place of a patch.
func StatFlag(usage string) ucli.Flag { return &ucli.BoolFlag{Name: "stat", Usage: usage} }

// stepDiffOutput answers step diff.
type stepDiffOutput struct {
	Step   protocol.Hash `json:"step"`
	Before protocol.Tree `json:"before"`
	After  protocol.Tree `json:"after"`
	Files  []FileChange  `json:"files"`
	Left   []string      `json:"left,omitempty"` // paths that are not kept
	Note   string        `json:"note,omitempty"`
}

// FileChange is one file of it.
type FileChange struct {
	Path    string `json:"path"`
	Status  string `json:"status"` // added, changed or removed
	Added   *int   `json:"added"`  // lines; null: it is no text
	Removed *int   `json:"removed"`
}

func (a Commands) stepDiff(ctx context.Context, c *ucli.Context) error {
	h, _, err := a.stepNode(ctx, c.Args().First())
	if err != nil {
		return err
	}
	e, err := a.Engine(ctx, nil)
	if err != nil {
		return err
	}
	if err := a.BundleFiles(ctx, e); err != nil {
		return err
	}
	kept, err := e.Files().StepFiles(ctx, h)
	if err != nil {
		return a.NotInBundle(err)
	}
	list, err := kept.Changes(ctx)
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.Say("step %s changed no file", h)
		a.Hint("uwf thread steps shows which did")
	}
	out := stepDiffOutput{Step: h, Before: kept.Before, After: kept.After, Files: FileChanges(list), Left: kept.Left, Note: kept.Note}
	return a.PrintFiles(ctx, out, kept, list, c.Bool("stat"))
}

// PrintFiles prints what differs, as a patch unless a format is asked for.
func (a Commands) PrintFiles(ctx context.Context, out any, kept workspace.StepFiles, list []files.Change, stat bool) error {
	own := render.Text
	return render.Print(a.Env.Stdout, a.Format(&own), out, func(w io.Writer) error {
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

// FileChanges are changes as results have them.
func FileChanges(list []files.Change) []FileChange {
	changes := make([]FileChange, len(list))
	for i, f := range list {
		changes[i] = FileChange{Path: strings.ToValidUTF8(f.Path, "\uFFFD"), Status: map[byte]string{'A': "added", 'D': "removed"}[f.Status]}
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
