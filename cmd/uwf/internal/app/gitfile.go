package app

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/gitfile"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/project"
)

// fetched is what a workflow's address leads to. What is only looked at needs no answer
// of the user's; what is to be run is shown and taken once for each content, and pinned.
func (a *App) fetched(ctx context.Context, text string) (data []byte, file string, ok bool, err error) {
	if !gitfile.Is(text) {
		return nil, "", false, nil
	}
	at, git, lock, err := a.GitFile(text)
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
			a.Say("uwf: warning: %v: the pinned content is used", err)
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
	if !a.Takes {
		return f.Text, name, true, nil
	}
	if git.Taken(f.Content) == nil {
		a.ShowFetched(at, f, f.Text)
		if err := a.Take(ctx, text); err != nil {
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

// GitFile is what is needed for an address.
func (a *App) GitFile(text string) (gitfile.Address, gitfile.Git, gitfile.Lock, error) {
	at, err := gitfile.Parse(text)
	if err != nil {
		return at, gitfile.Git{}, gitfile.Lock{}, err
	}
	dirs, err := a.Dirs()
	if err != nil {
		return at, gitfile.Git{}, gitfile.Lock{}, err
	}
	root, err := project.From(a.Env, a.Env.Dir).Root()
	return at, gitfile.Git{Env: a.Env, Dirs: dirs}, gitfile.Lock{Root: root}, err
}

// ShowFetched shows what is to be taken.
func (a *App) ShowFetched(at gitfile.Address, f gitfile.File, text []byte) {
	fmt.Fprintf(a.Env.Stderr, "%s is commit %s, %s:\n\n", plaintext.Line(at.Text), f.Commit, f.Content)
	for line := range strings.Lines(string(text)) {
		fmt.Fprintf(a.Env.Stderr, "  %s\n", plaintext.Line(strings.TrimRight(line, "\r\n")))
	}
	fmt.Fprintln(a.Env.Stderr)
}

// Take asks whether what was shown is to be taken, unless --yes has said so.
func (a *App) Take(ctx context.Context, text string) error {
	if a.Yes {
		return nil
	}
	return a.Confirm(ctx, "use "+text+" as shown above?", "--yes takes it")
}
