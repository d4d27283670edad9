package cli

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cmd/uwf/internal/remote"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
)

// yesFlag takes a workflow from elsewhere without a question.
func yesFlag() ucli.Flag {
	return &ucli.BoolFlag{Name: "yes", Usage: "take a workflow from a git repository without being asked"}
}

// fetched is what a workflow's address leads to. What is only looked at needs no answer
// of the user's; what is to be run is shown and taken once for each content, and pinned.
func (a *app) fetched(ctx context.Context, text string) (data []byte, file string, ok bool, err error) {
	if !remote.Is(text) {
		return nil, "", false, nil
	}
	at, git, lock, err := a.remote(text)
	if err != nil {
		return nil, "", true, err
	}
	pin, pinned, err := lock.Find(at)
	if err != nil {
		return nil, "", true, err
	}
	name := path.Base(at.Path)
	f, err := git.Fetch(ctx, at)
	if err != nil {
		if kept := git.Taken(pin.Content); pinned && kept != nil {
			a.say("uwf: warning: %v: the pinned content is used", err)
			return kept, name, true, nil
		}
		return nil, "", true, err
	}
	if pinned && f.Content != pin.Content {
		return nil, "", true, &protocol.Error{
			Code: protocol.CodeInvalid,
			Message: fmt.Sprintf("%s has moved: pinned is %s (commit %s), now it is %s (commit %s)", text,
				pin.Content, plaintext.Line(pin.Commit), f.Content, f.Commit),
			Hints: []string{"uwf workflow update " + plaintext.Word(text) + " shows what differs"},
		}
	}
	if !a.takes {
		return f.Text, name, true, nil
	}
	if git.Taken(f.Content) == nil {
		a.showFetched(at, f, f.Text)
		if err := a.take(ctx, text); err != nil {
			return nil, "", true, err
		}
		if err := git.Take(f); err != nil {
			return nil, "", true, err
		}
	}
	if !pinned {
		err = lock.Set(at, f)
	}
	return f.Text, name, true, err
}

// remote is what is needed for an address.
func (a *app) remote(text string) (remote.Address, remote.Git, remote.Lock, error) {
	at, err := remote.Parse(text)
	if err != nil {
		return at, remote.Git{}, remote.Lock{}, err
	}
	dirs, err := a.dirs()
	if err != nil {
		return at, remote.Git{}, remote.Lock{}, err
	}
	root, err := project.From(a.env, a.env.Dir).Root()
	return at, remote.Git{Env: a.env, Dirs: dirs}, remote.Lock{Root: root}, err
}

// showFetched shows what is to be taken.
func (a *app) showFetched(at remote.Address, f remote.File, text []byte) {
	fmt.Fprintf(a.env.Stderr, "%s is commit %s, %s:\n\n", plaintext.Line(at.Text), f.Commit, f.Content)
	for line := range strings.Lines(string(text)) {
		fmt.Fprintf(a.env.Stderr, "  %s\n", plaintext.Line(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintln(a.env.Stderr)
}

// take asks whether what was shown is to be taken, unless --yes has said so.
func (a *app) take(ctx context.Context, text string) error {
	if a.yes {
		return nil
	}
	return a.confirm(ctx, "use "+text+" as shown above?", "--yes takes it")
}

// updateOutput answers workflow update.
type updateOutput struct {
	Address string `json:"address"`
	Commit  string `json:"commit"`
	Content string `json:"content"`
	Moved   bool   `json:"moved"`
}

func (a *app) workflowUpdateCommand() *ucli.Command {
	return a.leaf(ucli.Command{
		Name: "update", ArgsUsage: "<address>", Usage: "take what a workflow's address in a git repository leads to now",
		Description: "Shows what differs from the pinned content, asks, and moves the pin in .uwf/lock.yaml.\n\n" +
			"   uwf workflow update github:owner/repo//review.yaml@v1",
		Flags: []ucli.Flag{yesFlag()},
	}, a.workflowUpdate)
}

func (a *app) workflowUpdate(ctx context.Context, c *ucli.Context) error {
	text := c.Args().First()
	a.yes = c.Bool("yes")
	at, git, lock, err := a.remote(text)
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
		a.showFetched(at, f, shown)
		if err := a.take(ctx, text); err != nil {
			return err
		}
		if err := git.Take(f); err != nil {
			return err
		}
	}
	if err := lock.Set(at, f); err != nil {
		return err
	}
	return a.print(out, func(w io.Writer) error {
		_, err := fmt.Fprintf(w, "%s: commit %s, %s\n", plaintext.Line(text), f.Commit, f.Content)
		return err
	})
}
