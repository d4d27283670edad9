package files

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// user is git in the user's own git directory, for what a person has asked for: no hook
// and no filter of the repository's runs.
func (r Repo) user(ctx context.Context) (git, error) {
	g, err := newGit(r.env.Environ, r.Root)
	if err != nil {
		return g, err
	}
	out, err := g.run(ctx, nil, "config", "-z", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil && !isStatus(err) {
		return g, err
	}
	var none [][2]string
	for _, key := range fields(out) {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		none = append(none, [2]string{key, value})
	}
	return g.with(none), nil
}

// Commit is the commit that a name stands for; ok is false if it stands for none.
func (r Repo) Commit(ctx context.Context, name string) (commit string, ok bool) {
	g, err := r.user(ctx)
	if err != nil || name == "" {
		return "", false
	}
	commit, err = g.line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", name+"^{commit}")
	return commit, err == nil
}

// AddWorktree makes a git worktree of the repository at a path where nothing is, at a
// commit, without files: see [Fill]. branch is made, too; "": none.
func (r Repo) AddWorktree(ctx context.Context, path, commit, branch string) error {
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "-q", "--no-checkout", "--no-track"}
	if branch == "" {
		args = append(args[:4], "--detach", path, commit)
	} else {
		args = append(args, "-b", branch, path, commit)
	}
	if _, err := g.run(ctx, nil, args...); err != nil {
		return err
	}
	g.dir = path
	if _, err := g.run(ctx, nil, "read-tree", commit); err != nil {
		return errors.Join(err, r.RemoveWorktree(ctx, path, "", ""))
	}
	return nil
}

// RemoveWorktree removes a worktree with all that is in it, and the branch if that is
// still at the commit it was made at.
func (r Repo) RemoveWorktree(ctx context.Context, path, branch, commit string) error {
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(path); err == nil {
		if _, err := g.run(ctx, nil, "worktree", "remove", "--force", "--force", path); err != nil {
			return err
		}
	} else if errors.Is(err, fs.ErrNotExist) {
		if _, err := g.run(ctx, nil, "worktree", "prune"); err != nil {
			return err
		}
	}
	if branch != "" && commit != "" {
		_, _ = g.run(ctx, nil, "update-ref", "-d", "refs/heads/"+branch, commit) // one with work of its own stays
	}
	return nil
}

// Fill makes the files of a work tree without any those of a tree; "": of a commit.
func Fill(ctx context.Context, e env.Env, r Repo, s Spec, tree protocol.Tree, commit string) error {
	if err := r.Seed(ctx, s.Git, true); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(s.Index), 0o700); err != nil {
		return err
	}
	if err := os.Remove(s.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	g, err := of(e.Environ, s)
	if err != nil {
		return err
	}
	what := sumOf(tree)
	if tree == "" {
		what = commit
	}
	_, err = g.run(ctx, nil, "read-tree", "--reset", "-u", what)
	return err
}

// Clear makes the files of a work tree that is nobody's those of a tree, whatever is
// there: what git ignores stays, unless it is in the way.
func Clear(ctx context.Context, e env.Env, s Spec, tree protocol.Tree) error {
	g, err := of(e.Environ, s)
	if err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "clean", "-q", "-f", "-f", "-d"); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// Forget removes what keeps the snapshots of a thread; what other threads have stays.
func Forget(ctx context.Context, e env.Env, s Spec) error {
	g, err := inStore(e, s.Git)
	if err != nil {
		return err
	}
	for _, ref := range []string{s.Ref, rescueRef(s.Ref)} {
		if _, err := g.run(ctx, nil, "update-ref", "-d", ref); err != nil {
			return err
		}
	}
	return nil
}

// TreeOf is the state of the files in a commit of the user's.
func (r Repo) TreeOf(ctx context.Context, s Spec, commit string) (protocol.Tree, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", err
	}
	sum, err := g.line(ctx, "rev-parse", "-q", "--verify", commit+"^{tree}")
	return treeOf(sum), err
}
