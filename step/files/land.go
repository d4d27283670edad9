package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/careful"
)

// ConflictError names the files that two sides of a merge have changed.
type ConflictError struct{ Paths []string }

func (e *ConflictError) Error() string { return "both sides have changed " + some(e.Paths) }

// ErrTooOld means that git cannot merge without a work tree.
var ErrTooOld = errors.New("git 2.38 or newer is needed to merge")

// ErrNobody means that git does not know in whose name to make a commit.
var ErrNobody = errors.New("git does not know who you are")

// MakeCommit makes a commit in the name of the user, in our git directory, of a tree with
// parents.
func (r Repo) MakeCommit(ctx context.Context, s Spec, tree protocol.Tree, message string, parents ...string) (string, error) {
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
	if err := g.sound(ctx, r.env, s.Git, base, tree); err != nil {
		return "", err
	}
	args := []string{"commit-tree", "--no-gpg-sign", "-F", "-"}
	for _, parent := range parents {
		args = append(args, "-p", parent)
	}
	out, err := g.run(ctx, []byte(message), append(args, sumOf(tree))...)
	return strings.TrimSpace(string(out)), err
}

// asUser is git with our git directory in the name of the person whose repository it
// is.
func (r Repo) asUser(ctx context.Context, s Spec) (git, error) {
	var said []string // by the environment
	for _, entry := range r.env.Environ {
		name, _, _ := strings.Cut(entry, "=")
		if strings.HasPrefix(name, "GIT_AUTHOR_") || strings.HasPrefix(name, "GIT_COMMITTER_") || name == "GIT_CONFIG_GLOBAL" {
			said = append(said, entry)
		}
	}
	g, err := r.user(ctx)
	if err != nil {
		return g, err
	}
	g = g.inTheNameOf(said)
	var who []string
	for _, as := range []string{"AUTHOR", "COMMITTER"} {
		ident, err := g.line(ctx, "var", "GIT_"+as+"_IDENT")
		if err != nil {
			return g, errors.Join(ErrNobody, err)
		}
		name, rest, _ := strings.Cut(ident, " <")
		email, _, _ := strings.Cut(rest, "> ")
		who = append(who, "GIT_"+as+"_NAME="+name, "GIT_"+as+"_EMAIL="+email)
	}
	g, err = inStore(r.env, s.Git)
	return g.inTheNameOf(who), err
}

// inTheNameOf has others make commits than us.
func (g git) inTheNameOf(who []string) git {
	g.env = slices.DeleteFunc(slices.Clone(g.env), func(entry string) bool {
		return strings.HasPrefix(entry, "GIT_AUTHOR_") || strings.HasPrefix(entry, "GIT_COMMITTER_")
	})
	g.env = append(g.env, who...)
	return g
}

// Contains reports whether a commit is among those that lead to another.
func (r Repo) Contains(ctx context.Context, s Spec, in, commit string) (bool, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return false, err
	}
	if _, err = g.run(ctx, nil, "merge-base", "--is-ancestor", commit, in); ended(err, saysNo) {
		return false, nil
	}
	return err == nil, err
}

// Merge is the tree of two commits together. Nothing is written but objects in our git
// directory. Errors: [*ConflictError], [ErrTooOld].
func (r Repo) Merge(ctx context.Context, s Spec, ours, theirs string) (protocol.Tree, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", err
	}
	out, err := g.start(ctx, bytes.NewReader(nil), []string{"merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", ours, theirs})
	switch list := fields(out); {
	case err == nil && len(list) > 0:
		return treeOf(list[0]), nil
	case ended(err, saysNo) && len(list) > 1:
		paths := slices.DeleteFunc(list[1:], func(path string) bool { return path == "" })
		return "", &ConflictError{Paths: slices.Compact(paths)}
	case ended(err, noSuchUse):
		return "", ErrTooOld
	}
	return "", err
}

// Bring copies a commit with all that it needs into the user's repository. No ref of
// theirs leads there yet. It is our git that packs it; theirs would start what the
// settings of the repository name.
func (r Repo) Bring(ctx context.Context, s Spec, commit string) error {
	user, err := r.user(ctx)
	if err != nil {
		return err
	}
	out, err := user.run(ctx, nil, "rev-parse", "--all", "--revs-only", "HEAD")
	if err != nil {
		return err
	}
	ours, err := inStore(r.env, s.Git)
	if err != nil {
		return err
	}
	known, _, err := ours.sorted(ctx, strings.Fields(string(out)))
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp(s.Git, "bring-*.tmp")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	revs := commit + "\n--not\n" + strings.Join(known, "\n") + "\n"
	if err := ours.packInto(ctx, dir, revs, append(missing(s, "--missing=allow-any"), "--revs")...); err != nil {
		return err
	}
	if err := r.give(dir); err != nil {
		return fmt.Errorf("write the objects of %s: %w", r.Common, err)
	}
	_, err = user.run(ctx, nil, "cat-file", "-e", commit+"^{tree}")
	return err
}

// give copies packs to those of the user. No link leads out of their git directory.
func (r Repo) give(dir string) (err error) {
	packs, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	root, err := os.OpenRoot(r.Common)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	slices.SortStableFunc(packs, byIndex)
	for _, pack := range packs {
		to := filepath.Join("objects", "pack", pack.Name())
		if _, err := root.Stat(to); err == nil {
			continue
		}
		if err := copyIn(root, filepath.Join(dir, pack.Name()), to); err != nil {
			return err
		}
	}
	return nil
}

// copyIn copies a file into a directory, flushed, whole or not at all.
func copyIn(root *os.Root, from, to string) (err error) {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	const readOnly = 0o444
	temporary := filepath.Join(filepath.Dir(to), "tmp_uwf_"+filepath.Base(to))
	_ = root.Remove(temporary) // of one that was killed
	out, err := root.OpenFile(temporary, os.O_WRONLY|os.O_CREATE|os.O_EXCL, readOnly)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	if err = errors.Join(err, out.Sync(), out.Close()); err == nil {
		err = root.Rename(temporary, to)
	}
	if err != nil {
		_ = root.Remove(temporary)
	}
	return err
}

// Branch is the branch that is checked out, "" if none is.
func (r Repo) Branch(ctx context.Context) (string, error) {
	g, err := r.user(ctx)
	if err != nil {
		return "", err
	}
	ref, err := g.line(ctx, "symbolic-ref", "-q", "HEAD")
	if ended(err, saysNo) {
		return "", nil
	}
	return strings.TrimPrefix(ref, "refs/heads/"), err
}

// unfinished are files by which git knows that it is in the middle of something.
func unfinished() map[string]string {
	return map[string]string{
		"MERGE_HEAD": "merge", "CHERRY_PICK_HEAD": "cherry-pick", "REVERT_HEAD": "revert",
		"rebase-merge": "rebase", "rebase-apply": "rebase", "sequencer": "sequence of picks",
	}
}

// Unfinished names what a person has begun with git in the work tree and not ended; "":
// nothing.
func (r Repo) Unfinished() string {
	for name, what := range unfinished() {
		if _, err := os.Lstat(filepath.Join(r.Dir, name)); err == nil {
			return what
		}
	}
	return ""
}

// CheckedOut is the work tree that has a branch; "": none has.
func (r Repo) CheckedOut(ctx context.Context, branch string) (string, error) {
	g, err := r.user(ctx)
	if err != nil {
		return "", err
	}
	out, err := g.run(ctx, nil, "for-each-ref", "--format=%(worktreepath)", "refs/heads/"+branch)
	return strings.TrimRight(string(out), "\n"), err
}

// Point moves a branch of the user's, or makes it if old is "". It fails if the branch
// is not at old any more.
func (r Repo) Point(ctx context.Context, branch, to, old, why string) error {
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "check-ref-format", "--branch", branch); err != nil {
		return fmt.Errorf("%s is no name for a branch", branch)
	}
	return g.point(ctx, "refs/heads/"+branch, to, old, why)
}

func (g git) point(ctx context.Context, ref, to, old, why string) error {
	if old == "" {
		old = strings.Repeat("0", len(to))
	}
	_, err := g.run(ctx, nil, "update-ref", "-m", why, ref, to, old)
	return err
}

// Edited are the files that differ between a commit and the work tree or the user's
// index: tracked ones, and others that git does not ignore.
type Edited struct{ Tracked, Others []string }

// Edited finds what a person has not committed; now is the work tree as it is.
func (r Repo) Edited(ctx context.Context, s Spec, now protocol.Tree) (Edited, error) {
	var e Edited
	ours, err := inStore(r.env, s.Git)
	if err != nil {
		return e, err
	}
	head, err := r.TreeOf(ctx, s, r.Head)
	if err != nil {
		return e, err
	}
	differing, err := ours.differing(ctx, head, now)
	if err != nil {
		return e, err
	}
	g, err := r.user(ctx)
	if err != nil {
		return e, err
	}
	staged, err := g.run(ctx, nil, "diff-index", "--cached", "--name-only", "--no-renames", "-z", "--ignore-submodules=all", r.Head)
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

// Laid is a tree with what differs between two commits laid over it: what the work tree
// is to be when its branch has gone from one to the other. Files that both have changed
// are in the way, unless they are the same: [*InTheWayError].
func (r Repo) Laid(ctx context.Context, s Spec, over protocol.Tree, e Edited, from, to string) (protocol.Tree, error) {
	g, err := inStore(r.env, s.Git)
	if err != nil {
		return "", err
	}
	var trees [2]protocol.Tree
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
			if differs[d.path] && (path == d.path || strings.HasPrefix(path, d.path+"/") || strings.HasPrefix(d.path, path+"/")) {
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

// Follow moves the branch that is checked out from one commit to another, and the user's
// index with it, in which what else is staged stays. The files are there already.
func (r Repo) Follow(ctx context.Context, s Spec, from, to, why string) error {
	unlock, err := lockIndex(ctx, r.Index, why)
	if err != nil {
		return err
	}
	defer unlock()
	fresh := r.Index + ".uwf.tmp"
	defer func() { _ = os.Remove(fresh) }()
	if err := scratch(fresh); err != nil {
		return err
	}
	if err := copyFile(r.Index, fresh, time.Time{}); err != nil {
		return err
	}
	if err := r.update(ctx, s, fresh, from, to); err != nil {
		return err
	}
	g, err := r.user(ctx)
	if err != nil {
		return err
	}
	now, err := g.line(ctx, "rev-parse", "-q", "--verify", "HEAD")
	if err != nil {
		return err
	}
	if now != to {
		if err := g.point(ctx, "HEAD", to, from, why); err != nil {
			return err
		}
	}
	return os.Rename(fresh, r.Index)
}

// update brings an index that was copied from the user's from one commit to another. Git
// looks at files for that, so that it has our settings: those of the repository name
// programs.
func (r Repo) update(ctx context.Context, s Spec, index, from, to string) error {
	entries, err := os.ReadDir(r.Dir)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !strings.HasPrefix(e.Name(), "sharedindex.") { // of a split one
			continue
		}
		here := filepath.Join(s.Git, e.Name())
		if err := copyFile(filepath.Join(r.Dir, e.Name()), here, time.Time{}); err != nil {
			return err
		}
		defer func() { _ = os.Remove(here) }()
	}
	s.Root, s.Keys, s.Index = r.Root, r.Keys, index
	g, err := of(r.env.Environ, s)
	if err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "read-tree", "-m", "-i", from, to); err != nil {
		return err
	}
	if _, err := g.run(ctx, nil, "update-index", "-q", "--refresh"); err != nil && !ended(err, saysNo) {
		return err
	}
	return nil
}

// lockIndex keeps git away from an index of the user's as git itself does. who is in the
// lock: found again, it was left by one that was killed, since there is one at a time.
func lockIndex(ctx context.Context, index, who string) (unlock func(), err error) {
	const most = 5 * time.Second
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	path, said := index+".lock", []byte(who+"\n")
	mine := index + ".uwf.lock.tmp"
	if err := os.WriteFile(mine, said, 0o600); err != nil {
		return nil, err
	}
	defer func() { _ = os.Remove(mine) }()
	for {
		err := os.Link(mine, path)
		if err == nil {
			return func() { _ = os.Remove(path) }, nil
		}
		if !errors.Is(err, fs.ErrExist) {
			return nil, err
		}
		if left, err := careful.ReadFile(path, maxSetting, careful.NoFollow); err == nil && bytes.Equal(left, said) {
			if err := os.Remove(path); err != nil {
				return nil, err
			}
			continue
		}
		select {
		case <-ctx.Done():
			return nil, &RefusedError{Dir: path, Reason: "another git command is at work, or was killed"}
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Locked reports whether a git command is at work in the work tree, or was killed there.
func (r Repo) Locked() bool {
	_, err := os.Lstat(r.Index + ".lock")
	return err == nil
}
