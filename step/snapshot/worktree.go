package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/safeopen"
)

// user is git in the user's own git directory, for what a person has asked for: no hook
// and no filter of the repository's runs.
func (r Repo) user(ctx context.Context) git {
	g := newGit(r.env.Environ, r.Root)
	out, err := g.run(ctx, nil, "config", "-z", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil && !ended(err, saysNo) {
		g.err = err
	}
	var none [][2]string
	for _, key := range fields(out) {
		value := ""
		if strings.HasSuffix(key, ".required") {
			value = "false"
		}
		none = append(none, [2]string{key, value})
	}
	return g.with(none)
}

// Commit is the commit that a name stands for; ok is false if it stands for none.
func (r Repo) Commit(ctx context.Context, name string) (commit string, ok bool) {
	if name == "" {
		return "", false
	}
	commit, err := r.user(ctx).line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", name+"^{commit}")
	return commit, err == nil
}

// AddWorktree makes a git worktree of the repository at a path where nothing is, at a
// commit, without files: see [Fill]. branch is made, too, unless it is there, at that
// commit; "": none.
func (r Repo) AddWorktree(ctx context.Context, path, commit, branch string) error {
	held, err := mend(ctx, r.Common, filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { _ = held.RemoveAndUnlock() }()
	if err := forgetWorktree(r.Common, path); err != nil {
		return err
	}
	g := r.user(ctx)
	// git may still know one at this path that is gone
	args := []string{"worktree", "add", "-q", "--force", "--no-checkout"}
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
		return errors.Join(err, r.removeWorktree(ctx, path, "", ""))
	}
	return nil
}

// RemoveHalfMade removes what a killed git left of worktrees below a directory of ours: git itself
// reports each as damage.
func RemoveHalfMade(ctx context.Context, common, dir string) error {
	held, err := mend(ctx, common, dir)
	if err != nil {
		return err
	}
	return held.RemoveAndUnlock()
}

func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// mend is [RemoveHalfMade]; it returns a lock, and nobody makes a worktree there until that is released.
func mend(ctx context.Context, common, dir string) (*durable.Held, error) {
	held, err := durable.Lock(ctx, filepath.Join(dir, "worktrees.lock"))
	if err != nil {
		return nil, err
	}
	err = eachWorktree(common, func(root *os.Root, at, path string) error {
		if path == "" {
			return nil // nobody can tell whose it is
		}
		if _, err := os.Lstat(goneFrom(path)); err == nil && isGone(path) && sameDir(filepath.Dir(path), dir) {
			return dismiss(root, at)
		}
		const begun = "initializing" // git's word for one that it makes
		why, err := safeopen.ReadFileIn(root, filepath.Join(at, "locked"), maxSetting)
		if err != nil || strings.TrimSpace(string(why)) != begun || !sameDir(filepath.Dir(path), dir) {
			return nil //nolint:nilerr // it is whole, or not ours
		}
		if err := os.Remove(filepath.Join(path, ".git")); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		_ = os.Remove(path) // there is nothing in it yet
		return dismiss(root, at)
	})
	if err != nil {
		return nil, errors.Join(err, held.RemoveAndUnlock())
	}
	return held, nil
}

// eachWorktree calls do for all worktrees that git knows, with the directory in which it
// keeps what it knows. path is "" if git was killed before it recorded where the worktree is.
func eachWorktree(common string, do func(root *os.Root, at, path string) error) error {
	root, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	known, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	for _, k := range known {
		at := filepath.Join("worktrees", k.Name())
		text, err := safeopen.ReadFileIn(root, filepath.Join(at, "gitdir"), maxSetting)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			continue // nobody can tell
		}
		path := strings.TrimSpace(string(text))
		if path != "" {
			path = filepath.Dir(path)
		}
		if err := do(root, at, path); err != nil {
			return err
		}
	}
	return nil
}

// dismiss makes git forget a worktree. It first removes the file that makes it one.
func dismiss(root *os.Root, at string) error {
	if err := root.Remove(filepath.Join(at, "gitdir")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err := root.RemoveAll(at)
	_ = root.Remove(filepath.Dir(at)) // as git does: there may be no other
	return err
}

// forgetWorktree makes git forget a worktree of ours, also one that it was killed over.
func forgetWorktree(common, path string) error {
	return eachWorktree(common, func(root *os.Root, at, known string) error {
		begun := known == "" && filepath.Base(at) == filepath.Base(path)
		if begun || known != "" && filepath.Base(known) == filepath.Base(path) &&
			sameDir(filepath.Dir(known), filepath.Dir(path)) {
			return dismiss(root, at)
		}
		return nil
	})
}

// sameDir reports whether two paths are of one directory, or the same.
func sameDir(a, b string) bool {
	return filepath.Clean(a) == filepath.Clean(b) || same(a, b)
}

// RemoveWorktree removes a worktree with all that is in it, if it is there, and what git
// knows of it; and the branch if that is still at the commit it was made at.
func (r Repo) RemoveWorktree(ctx context.Context, path, branch, commit string) error {
	held, err := mend(ctx, r.Common, filepath.Dir(path))
	if errors.Is(err, fs.ErrNotExist) { // there is no directory with worktrees
		return nil
	}
	if err != nil {
		return err
	}
	return errors.Join(r.removeWorktree(ctx, path, branch, commit), held.RemoveAndUnlock())
}

func (r Repo) removeWorktree(ctx context.Context, path, branch, commit string) error {
	g := r.user(ctx)
	common, err := filepath.EvalSymlinks(r.Common)
	if err != nil {
		return err
	}
	g = g.in(common, "", "") // where we are may be what is removed
	g.dir = common
	gone := goneFrom(path)
	if err := os.Rename(path, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := forgetWorktree(common, path); err != nil {
		return err
	}
	if branch != "" && commit != "" {
		ref := "refs/heads/" + branch
		_, err := g.run(ctx, nil, "update-ref", "-d", ref, commit) // one with work of its own stays
		if err != nil && unlocked(ctx, common, append(r.locksOf(ctx, ref), packedLock)) {
			_, _ = g.run(ctx, nil, "update-ref", "-d", ref, commit)
		}
	}
	return os.RemoveAll(gone) // as long as it is there, a git may have been killed over the branch
}

// goneFrom is where a worktree is moved in one go before it is removed, so that a kill never
// leaves half of it in place.
func goneFrom(path string) string {
	return filepath.Join(filepath.Dir(path), gonePrefix+filepath.Base(path))
}

const gonePrefix = ".gone-"

// FinishRemovals ends the removals of worktrees below a directory of ours that were cut off, of
// which their repositories may still know.
func FinishRemovals(ctx context.Context, dir string, repos []string) error {
	entries, err := os.ReadDir(dir)
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return !strings.HasPrefix(e.Name(), gonePrefix) })
	for _, common := range repos {
		err = errors.Join(err, RemoveHalfMade(ctx, common, dir))
		for _, e := range entries {
			if path := filepath.Join(dir, strings.TrimPrefix(e.Name(), gonePrefix)); isGone(path) { // nor made again
				err = errors.Join(err, forgetWorktree(common, path))
			}
			unlocked(ctx, common, []string{packedLock})
		}
	}
	if err != nil {
		return err
	}
	for _, e := range entries {
		err = errors.Join(err, os.RemoveAll(filepath.Join(dir, e.Name())))
	}
	return err
}

// Ignores reports whether a worktree has files that git ignores.
func (r Repo) Ignores(ctx context.Context) (bool, error) {
	g := r.user(ctx)
	out, err := g.run(ctx, nil, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all",
		"--ignored=traditional")
	return strings.Contains("\x00"+string(out), "\x00!! "), err
}

// making is the plan of a worktree. As long as the plan exists, nobody has worked in the
// worktree.
type making struct {
	intent
	Repo   string `json:"repo"`             // root of a work tree of the repository
	Branch string `json:"branch,omitempty"` // that is made, too
	Commit string `json:"commit,omitempty"` // that the branch is made at
}

// RemovePlanned removes a worktree that was planned and that nobody has ever had, as far as it
// was made, with its branch, unless may returns an error. It reports whether a plan was there.
func RemovePlanned(ctx context.Context, e env.Env, path, record string, may func(path, commit string) error) (bool, error) {
	text, err := safeopen.ReadFile(record, maxIntent, safeopen.NoFollow)
	var m making
	if err != nil || json.Unmarshal(text, &m) != nil || m.Repo == "" {
		return false, nil //nolint:nilerr // it is the record of something else
	}
	r, err := Find(ctx, e, m.Repo)
	if errors.Is(err, ErrNone) || errors.Is(err, fs.ErrNotExist) { // git knows of nothing any more
		return true, os.RemoveAll(path)
	}
	if err != nil {
		return false, err
	}
	if m.Branch != "" {
		root, err := os.OpenRoot(r.Common)
		if err != nil {
			return true, err
		}
		// of a git that was killed with it
		_ = root.Remove(filepath.Join("refs", "heads", filepath.FromSlash(m.Branch)) + lockSuffix)
		_ = root.Close()
	}
	if err := may(path, m.Commit); err != nil {
		return false, err
	}
	return true, r.RemoveWorktree(ctx, path, m.Branch, m.Commit)
}

// PlanWorktree records that a work tree is to be made with the files of a tree, which it
// returns; "": of a commit. branch is one that is made with it; "": none. [Fill] makes the
// files, or if that was cut off, [Begin]. The plan goes when somebody may work there.
func PlanWorktree(ctx context.Context, e env.Env, r Repo, s Spec, tree protocol.Tree, commit, branch,
	record string) (protocol.Tree, error) {
	if err := r.Seed(ctx, s.Git, true); err != nil {
		return "", err
	}
	if tree == "" {
		var err error
		if tree, err = r.TreeOf(ctx, s, commit); err != nil {
			return "", err
		}
	}
	text, _ := json.Marshal(making{intent{From: orEmpty("", tree), To: tree}, r.Root, branch, commit}) // texts always encode
	return tree, durable.WriteFile(durable.OS(), record, append(text, '\n'), 0o600)
}

// Fill writes the files of a tree into a work tree that has none, as planned.
func Fill(ctx context.Context, e env.Env, s Spec, tree protocol.Tree) error {
	if err := os.Remove(s.Index); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	g := of(e.Environ, s)
	if err := g.sound(ctx, e, s.Git, "", tree); err != nil {
		return err
	}
	_, err := g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// SkipAbsent makes the user's git overlook the files of a new worktree that a sparse checkout leaves out: all
// that are not there, unless the tree that it was filled with lacks them.
func (r Repo) SkipAbsent(ctx context.Context, s Spec, commit string, tree protocol.Tree) error {
	if _, sparse := r.key("core.sparsecheckout"); !sparse {
		return nil
	}
	lacks, err := inStore(r.env, s.Git).paths(ctx, "D", commit, sumOf(tree))
	if err != nil {
		return err
	}
	g := r.user(ctx)
	g.dir = r.Root
	out, err := g.run(ctx, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	return g.skip(ctx, r.Root, slices.DeleteFunc(fields(out), func(path string) bool {
		return slices.Contains(lacks,
			path)
	}))
}

// RefreshIndex makes the user's git know that the files of a new worktree are as in its index, without
// asking filters: git asks them again about files as new as the index.
func (r Repo) RefreshIndex(ctx context.Context) error {
	g := r.user(ctx)
	g.dir = r.Root
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second): // git may compare whole seconds
	}
	_, err := g.run(ctx, nil, "update-index", "-q", "--refresh")
	if ended(err, saysNo) {
		return nil // a snapshot differs from the commit
	}
	return err
}

// Reset makes the files of a work tree that nobody works in those of a tree, whatever is
// there: ignored files and s.Skip stay, unless they are in the way.
func Reset(ctx context.Context, e env.Env, s Spec, tree protocol.Tree) error {
	g := of(e.Environ, s)
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
	_, err := g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// ignorable is a path that stands for itself in a pattern of .gitignore's.
func ignorable(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// DeleteRefs removes what keeps the snapshots of a thread, and other refs of it; what other
// threads have stays.
func DeleteRefs(ctx context.Context, e env.Env, s Spec, more ...string) error {
	var gone strings.Builder
	for _, ref := range append(more, s.Ref, rescueRef(s.Ref)) {
		gone.WriteString("delete " + ref + "\n")
	}
	_, err := inStore(e, s.Git).run(ctx, []byte(gone.String()), "update-ref", "--stdin")
	return err
}

// SetRef makes a ref of ours keep a commit.
func (r Repo) SetRef(ctx context.Context, s Spec, ref, commit string) error {
	_, err := inStore(r.env, s.Git).run(ctx, nil, "update-ref", ref, commit)
	return err
}

// TreeOf is the state of the files in a commit.
func (r Repo) TreeOf(ctx context.Context, s Spec, commit string) (protocol.Tree, error) {
	sum, err := inStore(r.env, s.Git).line(ctx, "rev-parse", "-q", "--verify", commit+"^{tree}")
	return treeOf(sum), err
}

// NewRepo makes a repository in a directory that is in none, without a commit. No template of
// the user's is in it, so no hook either.
func NewRepo(ctx context.Context, e env.Env, dir, function string) (Repo, error) {
	g := newGit(e.Environ, dir)
	if _, err := g.run(ctx, nil, "init", "-q", "--template=", "--object-format="+function); err != nil {
		return Repo{}, err
	}
	return Find(ctx, e, dir)
}

// FirstCommit makes the first commit of a repository that has none, with the files of a tree. The
// work tree stays as it is.
func (r Repo) FirstCommit(ctx context.Context, s Spec, tree protocol.Tree, message string) error {
	ours := inStore(r.env, s.Git)
	if err := ours.sound(ctx, r.env, s.Git, "", tree); err != nil {
		return err
	}
	commit, err := ours.line(ctx, "commit-tree", "--no-gpg-sign", "-m", message, sumOf(tree))
	if err != nil {
		return err
	}
	if err := r.Import(ctx, s, commit, message); err != nil {
		return err
	}
	g := r.user(ctx)
	_, err = g.run(ctx, nil, "update-ref", "HEAD", commit)
	if err == nil {
		_, err = g.run(ctx, nil, "read-tree", commit)
	}
	return errors.Join(err, r.Release(message))
}
