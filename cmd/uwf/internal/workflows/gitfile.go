package workflows

import (
	"context"
	"fmt"
	"io"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/util/plaintext"
)

// YesFlag takes a workflow from elsewhere without a question.
func YesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Usage: "take a workflow from a git repository without being asked"}
}

// updateOutput answers workflow update.
type updateOutput struct {
	Address string `json:"address"`
	Commit  string `json:"commit"`
	Content string `json:"content"`
	Moved   bool   `json:"moved"`
}

func (a Commands) workflowUpdateCommand() *ucli.Command {
	return a.Leaf(ucli.Command{
		Name: "update", ArgsUsage: "<address>", Usage: "update a workflow's pin to what its git address leads to now",
		Description: "Shows what differs from the pinned content, asks, and moves the pin in .uwf/lock.yaml.\n\n" +
			"   uwf workflow update github:owner/repo//review.yaml@v1",
		Flags: []ucli.Flag{YesFlag()},
	}, a.workflowUpdate)
}

func (a Commands) workflowUpdate(ctx context.Context, c *ucli.Context) error {
	text := c.Args().First()
	a.Yes = c.Bool("yes")
	at, git, lock, err := a.GitFile(text)
	if err != nil {
		return err
	}
	pin, pinned, err := lock.Find(at)
	if err != nil {
		return err
	}
	f, err := git.Fetch(ctx, at)
	if err != nil {
		return err
	}
	out := updateOutput{Address: text, Commit: f.Commit, Content: f.Content, Moved: !pinned || pin.Content != f.Content}
	if out.Moved || git.Taken(f.Content) == nil {
		shown := f.Text
		if before := git.Taken(pin.Content); pinned && before != nil {
			if shown, err = git.Diff(ctx, before, f.Text); err != nil {
				return err
			}
		}
		a.ShowFetched(at, f, shown)
		if err := a.Take(ctx, text); err != nil {
			return err
		}
		if err := git.Take(f); err != nil {
			return err
		}
	}
	if err := lock.Set(at, f); err != nil {
		return err
	}
	return a.Print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: commit %s, %s\n", plaintext.Line(text), f.Commit, f.Content)
		return err
	})
}
