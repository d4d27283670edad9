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
	if err != nil && !ended(err, saysNo) {
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
// commit, without files: see [Fill]. branch is made, too, unless it is there, at that
// commit; "": none.
func (r Repo) AddWorktree(ctx context.Context, path, commit, branch string) error {
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	args := []string{"worktree", "add", "-q", "--force", "--no-checkout"} // git may still know one at this path that is gone
	_, exists := r.Commit(ctx, "refs/heads/"+branch)
	switch {
	case branch == "":
		args = append(args, "--detach", path, commit)
	case exists:
		args = append(args, path, branch)
	default:
		args = append(args, "--no-track", "-b", branch, path, commit)
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

// RemoveWorktree removes a worktree with all that is in it, if it is there, and what git
// knows of it; and the branch if that is still at the commit it was made at.
func (r Repo) RemoveWorktree(ctx context.Context, path, branch, commit string) error {
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	if common, err := filepath.EvalSymlinks(r.Common); err == nil {
		g = g.in(common, "", "") // where we are may be what is removed
		g.dir = common
	}
	if _, err := g.run(ctx, nil, "worktree", "remove", "--force", "--force", path); err != nil {
		if _, there := os.Lstat(path); !errors.Is(there, fs.ErrNotExist) {
			return err
		}
	}
	if branch != "" && commit != "" {
		_, _ = g.run(ctx, nil, "update-ref", "-d", "refs/heads/"+branch, commit) // one with work of its own stays
	}
	return nil
}

// Untouched reports whether all files of a worktree are as in its commit; ignored ones
// count if they are asked for.
func (r Repo) Untouched(ctx context.Context, ignored bool) (bool, error) {
	g, err := r.user(ctx)
	if err != nil {
		return false, err
	}
	args := []string{"status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all"}
	if ignored {
		args = append(args, "--ignored=traditional")
	}
	out, err := g.run(ctx, nil, args...)
	return len(out) == 0, err
}

// OnBranch reports whether a branch, a tag or a remote's branch leads to a commit.
func (r Repo) OnBranch(ctx context.Context, commit string) (bool, error) {
	g, err := r.user(ctx)
	if err != nil {
		return false, err
	}
	out, err := g.run(ctx, nil, "for-each-ref", "--count=1", "--contains", commit, "refs/heads", "refs/remotes", "refs/tags")
	return len(out) > 0, err
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
	if tree == "" {
		if tree, err = r.TreeOf(ctx, s, commit); err != nil {
			return err
		}
	}
	if err := g.sound(ctx, e, s.Git, "", tree); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// Clear makes the files of a work tree that is nobody's those of a tree, whatever is
// there: what git ignores and s.Skip stay, unless they are in the way.
func Clear(ctx context.Context, e env.Env, s Spec, tree protocol.Tree) error {
	g, err := of(e.Environ, s)
	if err != nil {
		return err
	}
	if err := g.sound(ctx, e, s.Git, "", tree); err != nil {
		return err
	}
	args := []string{"clean", "-q", "-f", "-f", "-d"}
	for _, path := range s.Skip { // what a set-up has linked, too
		args = append(args, "-e", "/"+ignorable(path))
	}
	if _, err := g.run(ctx, nil, args...); err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// ignorable is a path that stands for itself in a pattern of .gitignore's.
func ignorable(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Forget removes what keeps the snapshots of a thread, and other refs of it; what other
// threads have stays.
func Forget(ctx context.Context, e env.Env, s Spec, more ...string) error {
	g, err := inStore(e, s.Git)
	if err != nil {
		return err
	}
	for _, ref := range append(more, s.Ref, rescueRef(s.Ref)) {
		if _, err := g.run(ctx, nil, "update-ref", "-d", ref); err != nil {
			return err
		}
	}
	return nil
}

// Remember has a ref of ours keep a commit.
func (r Repo) Remember(ctx context.Context, s Spec, ref, commit string) error {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, nil, "update-ref", ref, commit)
	return err
}

// TreeOf is the state of the files in a commit.
func (r Repo) TreeOf(ctx context.Context, s Spec, commit string) (protocol.Tree, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", err
	}
	sum, err := g.line(ctx, "rev-parse", "-q", "--verify", commit+"^{tree}")
	return treeOf(sum), err
}
