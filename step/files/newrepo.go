package files

import (
	"context"
	"errors"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// NewRepo makes a repository in a directory that is in none, without a commit. No template of
// the user's is in it, so no hook either.
func NewRepo(ctx context.Context, e env.Env, dir, function string) (Repo, error) {
	g, err := newGit(e.Environ, dir)
	if err != nil {
		return Repo{}, err
	}
	if _, err := g.run(ctx, nil, "init", "-q", "--template=", "--object-format="+function); err != nil {
		return Repo{}, err
	}
	return Find(ctx, e, dir)
}

// FirstCommit makes the first commit of a repository that has none, with the files of a tree. The
// work tree stays as it is.
func (r Repo) FirstCommit(ctx context.Context, s Spec, tree protocol.Tree, message string) error {
	ours, err := inStore(r.env, s.Git)
	if err != nil {
		return err
	}
	if err := ours.sound(ctx, r.env, s.Git, "", tree); err != nil {
		return err
	}
	commit, err := ours.line(ctx, "commit-tree", "--no-gpg-sign", "-m", message, sumOf(tree))
	if err != nil {
		return err
	}
	if err := r.Bring(ctx, s, commit, message); err != nil {
		return err
	}
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "update-ref", "HEAD", commit)
	if err == nil {
		_, err = g.run(ctx, nil, "read-tree", commit)
	}
	return errors.Join(err, r.LetGo(message))
}
