package snapshot

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
)

// ConflictError lists the files changed by both sides of a merge.
type ConflictError struct{ Paths []string }

func (e *ConflictError) Error() string { return "both sides changed " + Abbreviate(e.Paths) }

// ErrTooOld means that git cannot merge without a work tree.
var ErrTooOld = errors.New("git 2.38 or newer is needed to merge")

// ErrNoIdentity means that git has no name and email address for a commit.
var ErrNoIdentity = errors.New("git has no user.name or user.email")

// MakeCommit creates a commit of a tree, with parents and the user as its author, in our git directory.
func (r Repo) MakeCommit(ctx context.Context, s Spec, tree protocol.Tree, message string,
	parents ...string) (string, error) {
	g, err := r.asUser(ctx, s)
	if err != nil {
		return "", err
	}
	var base protocol.Tree
	if len(parents) > 0 {
		if base, err = r.TreeOf(ctx, s, parents[0]); err != nil {
			return "", err
		}
	}
	if err := g.sound(ctx, r.env, base, tree); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "--no-gpg-sign", "-F", "-"}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	out, err := g.run(ctx, []byte(message), append(args, sumOf(tree))...)
	return strings.TrimSpace(string(out)), err
}

// FindCommit searches one of our refs for the commit of a tree with a given parent: its newest commit, or one
// merged by it. ok is false if there is none.
func (r Repo) FindCommit(ctx context.Context, s Spec, ref string, tree protocol.Tree,
	parent string) (commit string, ok bool) {
	g := inStore(r.env, s.Git)
	for _, name := range []string{ref, ref + "^2"} {
		output, err := g.line(ctx, "log", "-1", "--format=%H %T %P", "--end-of-options", name)
		if words := strings.Fields(output); err == nil && len(words) == 3 && words[1] == sumOf(tree) && words[2] == parent {
			return words[0], true
		}
	}
	return "", false
}

// asUser returns git with our git directory and the repository's user as author.
func (r Repo) asUser(ctx context.Context, s Spec) (git, error) {
	var set []string // from the environment
	for _, entry := range r.env.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") ||
			name == "GIT_CONFIG_GLOBAL" {
			set = append(set, entry)
		}
	}
	g := r.user(ctx).inTheNameOf(set)
	var who []string
	for _, as := range []string{"AUTHOR", "COMMITTER"} {
		ident, err := g.line(ctx, "var", "GIT_"+as+"_IDENT")
		if err != nil {
			return g, errors.Join(ErrNoIdentity, err)
		}
		name, rest, _ := strings.Cut(ident, " <")
		email, _, _ := strings.Cut(rest, "> ")
		who = append(who, "GIT_"+as+"_NAME="+name, "GIT_"+as+"_EMAIL="+email)
	}
	return inStore(r.env, s.Git).inTheNameOf(who), nil
}

// inTheNameOf sets the author and committer.
func (g git) inTheNameOf(who []string) git {
	g.env = slices.DeleteFunc(slices.Clone(g.env), func(entry string) bool {
		return strings.HasPrefix(entry, "GIT_AUTHOR_") || strings.HasPrefix(entry, "GIT_COMMITTER_")
	})
	g.env = append(g.env, who...)
	return g
}

// Contains reports whether a commit is an ancestor of another.
func (r Repo) Contains(ctx context.Context, s Spec, in, commit string) (bool, error) {
	_, err := inStore(r.env, s.Git).run(ctx, nil, "merge-base", "--is-ancestor", commit, in)
	if ended(err, exitNo) {
		return false, nil
	}
	return err == nil, err
}

// MergeTrees merges two trees with a common base. It writes only objects in our git directory. Errors are as
// for [Merge].
func MergeTrees(ctx context.Context, e env.Env, store string, base, ours, theirs protocol.Tree) (protocol.Tree, error) {
	switch {
	case theirs == base || theirs == ours:
		return ours, nil
	case ours == base:
		return theirs, nil
	}
	g := inStore(e, store)
	var commits [2]string
	begun, err := g.line(ctx, "commit-tree", "--no-gpg-sign", "-m", "uwf", sumOf(base))
	for i, tree := range []protocol.Tree{ours, theirs} {
		if err == nil {
			commits[i], err = g.line(ctx, "commit-tree", "--no-gpg-sign", "-m", "uwf", "-p", begun, sumOf(tree))
		}
	}
	if err != nil {
		return "", err
	}
	return Merge(ctx, e, store, commits[0], commits[1])
}

// Merge returns the merged tree of two commits. It writes only objects in our git directory. Errors:
// [*ConflictError], [ErrTooOld].
func Merge(ctx context.Context, e env.Env, store, ours, theirs string) (protocol.Tree, error) {
	out, err := inStore(e, store).run(ctx, nil, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs)
	switch list := fields(out); {
	case err == nil && len(list) > 0:
		return treeOf(list[0]), nil
	case ended(err, exitNo) && len(list) > 1:
		paths := slices.DeleteFunc(list[1:], func(path string) bool { return path == "" })
		return "", &ConflictError{Paths: slices.Compact(paths)}
	case ended(err, exitUsage):
		return "", ErrTooOld
	}
	return "", err
}

// Branch returns the branch that is checked out, or "".
func (r Repo) Branch(ctx context.Context) (string, error) {
	ref, err := r.user(ctx).line(ctx, "symbolic-ref", "-q", "HEAD")
	if ended(err, exitNo) {
		return "", nil
	}
	return strings.TrimPrefix(ref, "refs/heads/"), err
}

// Unfinished returns the git operation in progress in the work tree, or "".
func (r Repo) Unfinished() string {
	for name, what := range map[string]string{
		"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
		"rebase-merge": "rebase", "rebase-apply": "rebase", "sequencer": "sequence of picks", "BISECT_LOG": "bisect",
	} {
		if !IsGone(filepath.Join(r.Dir, name)) {
			return what
		}
	}
	return ""
}

// CheckedOut returns the work tree in which a branch is checked out, or "".
func (r Repo) CheckedOut(ctx context.Context, branch string) (string, error) {
	out, err := r.user(ctx).run(ctx, nil, "for-each-ref", "--format=%(worktreepath)", "refs/heads/"+branch)
	return strings.TrimRight(string(out), "\n"), err
}

// SetBranch moves a user's branch, or creates it if old is "". It fails if the branch isn't at old. again
// means that a killed process tried this before and might have left a lock.
func (r Repo) SetBranch(ctx context.Context, branch, to, old, why string, again bool) error {
	g := r.user(ctx)
	if _, err := g.run(ctx, nil, "check-ref-format", "--branch", branch); err != nil {
		return fmt.Errorf("invalid branch name %s", branch)
	}
	return r.point(ctx, g, "refs/heads/"+branch, to, old, why, again)
}

func (r Repo) point(ctx context.Context, g git, ref, to, old, why string, again bool) error {
	if old == "" {
		old = strings.Repeat("0", len(to))
	}
	_, err := g.run(ctx, nil, "update-ref", "-m", why, ref, to, old)
	if err != nil && again && unlocked(ctx, r.Common, r.locksOf(ctx, ref)) {
		_, err = g.run(ctx, nil, "update-ref", "-m", why, ref, to, old)
	}
	return err
}

// Edited lists the files that differ between a commit and the work tree or the user's index: tracked files,
// and untracked files that git doesn't ignore.
type Edited struct{ Tracked, Others []string }

// Edited returns uncommitted changes; now is the current state of the work tree.
func (r Repo) Edited(ctx context.Context, s Spec, now protocol.Tree) (Edited, error) {
	var e Edited
	head, err := r.TreeOf(ctx, s, r.Head)
	if err != nil {
		return e, err
	}
	differing, err := inStore(r.env, s.Git).differing(ctx, head, now)
	if err != nil {
		return e, err
	}
	g := r.user(ctx)
	staged, err := g.run(ctx, nil, "diff-index", "--cached", "--name-only", "--no-renames", "-z",
		"--ignore-submodules=dirty", r.Head)
	if err != nil {
		return e, err
	}
	e.Tracked = fields(staged)
	for _, d := range differing {
		switch {
		case slices.Contains(e.Tracked, d.path):
		case d.status == 'A':
			e.Others = append(e.Others, d.path)
		default:
			e.Tracked = append(e.Tracked, d.path)
		}
	}
	slices.Sort(e.Tracked)
	return e, nil
}

// Overlay applies the changes between two commits to a tree, giving the work tree's new state when its branch
// moves. Files changed on both sides are in the way unless they are equal: [*InTheWayError].
func (r Repo) Overlay(ctx context.Context, s Spec, over protocol.Tree, e Edited, from, to string) (protocol.Tree, error) {
	g := inStore(r.env, s.Git)
	var trees [2]protocol.Tree
	var err error
	for i, commit := range []string{from, to} {
		if trees[i], err = r.TreeOf(ctx, s, commit); err != nil {
			return "", err
		}
	}
	plan, err := g.differing(ctx, trees[0], trees[1])
	if err != nil {
		return "", err
	}
	have, err := g.differing(ctx, over, trees[1])
	if err != nil {
		return "", err
	}
	differs := map[string]bool{}
	for _, d := range have {
		differs[d.path] = true
	}
	var blocked []string
	edited := append(slices.Clone(e.Tracked), e.Others...)
	for _, d := range plan {
		for _, path := range edited {
			if differs[d.path] && (path == d.path || strings.HasPrefix(path, d.path+"/") || strings.HasPrefix(d.path,
				path+"/")) {
				blocked = append(blocked, path)
			}
		}
	}
	if len(blocked) > 0 {
		slices.Sort(blocked)
		return "", &InTheWayError{Paths: slices.Compact(blocked)}
	}
	return g.graft(ctx, s, over, plan)
}

// AdvanceHead moves the branch that is checked out from one commit to another and updates the user's index,
// in which other staged changes stay. The files must already be updated. again is as for [Repo.SetBranch]: an
// interrupted call can have updated the index.
func (r Repo) AdvanceHead(ctx context.Context, s Spec, from, to, why string, again bool) error {
	err := r.update(ctx, s, from, to)
	if err != nil && again && unlocked(ctx, r.Dir, []string{filepath.Base(r.Index) + lockSuffix}) {
		err = r.update(ctx, s, from, to)
	}
	if err != nil {
		return err
	}
	g := r.user(ctx)
	now, err := g.line(ctx, "rev-parse", "-q", "--verify", "HEAD")
	if err == nil && now != to {
		err = r.point(ctx, g, "HEAD", to, from, why, again)
	}
	return err
}

// update moves the user's index from one commit to another. Git reads files for that, so it runs with our settings:
// the repository's could start programs.
func (r Repo) update(ctx context.Context, s Spec, from, to string) error {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "sharedindex.") { // of a split index
			continue
		}
		here := filepath.Join(s.Git, e.Name())
		if err := copyFile(filepath.Join(r.Dir, e.Name()), here); err != nil {
			return err
		}
		defer func() { _ = os.Remove(here) }()
	}
	s.Root, s.Keys, s.Index = r.Root, r.Keys, r.Index
	g := of(r.env.Environ, s)
	if _, err := g.run(ctx, nil, "read-tree", "-m", "-i", from, to); err != nil {
		return err
	}
	if _, sparse := setting(r.Keys, "core.sparsecheckout"); sparse { // new files outside it don't exist
		added, err := g.paths(ctx, "A", from, to)
		if err = errors.Join(err, g.skip(ctx, r.Root, added)); err != nil {
			return err
		}
	}
	if _, err = g.run(ctx, nil, "update-index", "-q", "--refresh"); ended(err, exitNo) {
		return nil
	}
	return err
}

// paths returns the paths added (A) or removed (D) between two commits or trees.
func (g git) paths(ctx context.Context, what, from, to string) ([]string, error) {
	out, err := g.run(ctx, nil, "diff-tree", "-r", "-z", "--name-only", "--no-renames", "--diff-filter="+what, from, to)
	return fields(out), err
}

// skip sets skip-worktree for the given files that don't exist.
func (g git) skip(ctx context.Context, root string, paths []string) error {
	paths = slices.DeleteFunc(paths, func(path string) bool {
		return !IsGone(filepath.Join(root, filepath.FromSlash(path)))
	})
	if len(paths) == 0 {
		return nil
	}
	_, err := g.run(ctx, joined(paths), "update-index", "--skip-worktree", "-z", "--stdin")
	return err
}
