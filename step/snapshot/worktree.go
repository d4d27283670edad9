package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/safeopen"
)

// user returns git with the user's git directory, for requested changes. It runs no hooks or filters of the
// repository.
func (r Repo) user(ctx context.Context) git {
	g := newGit(r.env.Environ, r.Root)
	out, err := g.run(ctx, nil, "config", "-z", "--name-only", "--get-regexp", `^filter\.`)
	if err != nil && !ended(err, exitNo) {
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

// Commit resolves a name to a commit; ok is false if there is none.
func (r Repo) Commit(ctx context.Context, name string) (commit string, ok bool) {
	if name == "" {
		return "", false
	}
	commit, err := r.user(ctx).line(ctx, "rev-parse", "-q", "--verify", "--end-of-options", name+"^{commit}")
	return commit, err == nil
}

// AddWorktree adds a git worktree at an unused path and a commit, without files: see [Reset]. It also creates
// branch at the commit, unless it exists or is "".
func (r Repo) AddWorktree(ctx context.Context, path, commit, branch string) error {
	if err := removeRecord(r.Common, path); err != nil {
		return err
	}
	g := r.user(ctx)
	// git might still have a record of a deleted worktree at this path
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
		return errors.Join(err, r.RemoveWorktree(ctx, path, "", ""))
	}
	return nil
}

// IsGone reports whether a path doesn't exist.
func IsGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// removeRecord removes git's record of our worktree, even if git was killed while creating it.
func removeRecord(common, path string) error {
	root, err := os.OpenRoot(common)
	if err != nil {
		return err
	}
	defer func() { _ = root.Close() }()
	at := filepath.Join("worktrees", filepath.Base(path))
	text, err := safeopen.ReadFileIn(root, filepath.Join(at, "gitdir"), maxSetting)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil //nolint:nilerr // unknown
	}
	// Without a path, git was killed before it recorded one.
	known, dir := strings.TrimSpace(string(text)), filepath.Dir(path)
	if in := filepath.Dir(filepath.Dir(known)); known != "" && in != dir && !gitdir.Same(in, dir) {
		return nil
	}
	// Start with the file that makes the record valid.
	if err := root.Remove(filepath.Join(at, "gitdir")); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	err = root.RemoveAll(at)
	_ = root.Remove(filepath.Dir(at)) // as git does: it might be the last one
	return err
}

// RemoveWorktree removes a worktree with its contents and git's record of it, and the branch if it is still
// at its original commit.
func (r Repo) RemoveWorktree(ctx context.Context, path, branch, commit string) error {
	g := r.user(ctx)
	common, err := filepath.EvalSymlinks(r.Common)
	if err != nil {
		return err
	}
	g = g.in(common, "", "") // the current directory might be the one being removed
	g.dir = common
	gone := goneFrom(path)
	if err := os.Rename(path, gone); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := removeRecord(common, path); err != nil {
		return err
	}
	if branch != "" && commit != "" {
		ref := "refs/heads/" + branch
		_, err := g.run(ctx, nil, "update-ref", "-d", ref, commit) // a branch with its own commits stays
		if err != nil && unlocked(ctx, common, append(r.locksOf(ctx, ref), packedLock)) {
			_, _ = g.run(ctx, nil, "update-ref", "-d", ref, commit)
		}
	}
	return safeopen.RemoveAll(gone) // while it exists, git might have been killed over the branch
}

// goneFrom returns the path to which a worktree is renamed before deletion, so that a kill never leaves half
// of it in place.
func goneFrom(path string) string {
	return filepath.Join(filepath.Dir(path), gonePrefix+filepath.Base(path))
}

const gonePrefix = ".gone-"

// FinishRemovals completes interrupted removals of worktrees below our directory, including the repositories'
// records of them.
func FinishRemovals(ctx context.Context, dir string) error {
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		name, isGoing := strings.CutPrefix(e.Name(), gonePrefix)
		if !isGoing {
			continue
		}
		at := filepath.Join(dir, e.Name())
		text, lost := safeopen.ReadFile(filepath.Join(at, ".git"), maxSetting, safeopen.NoFollow)
		record, isWorktree := strings.CutPrefix(strings.TrimSpace(string(text)), "gitdir: ")
		var stays error
		if common := filepath.Dir(filepath.Dir(record)); lost == nil && isWorktree && !IsGone(common) {
			if path := filepath.Join(dir, name); IsGone(path) { // and not created again
				stays = removeRecord(common, path)
			}
			unlocked(ctx, common, []string{packedLock})
		}
		if stays == nil {
			stays = safeopen.RemoveAll(at)
		}
		err = errors.Join(err, stays)
	}
	return err
}

// Ignores reports whether a worktree contains ignored files.
func (r Repo) Ignores(ctx context.Context) (bool, error) {
	out, err := r.user(ctx).run(ctx, nil, "status", "--porcelain", "-z", "--untracked-files=normal", "--ignore-submodules=all",
		"--ignored=traditional")
	return strings.Contains("\x00"+string(out), "\x00!! "), err
}

// making is the plan for a new worktree. While it exists, nobody has worked in the worktree.
type making struct {
	To     protocol.Tree `json:"to"`               // its files
	Repo   string        `json:"repo"`             // root of a work tree of the repository
	Branch string        `json:"branch,omitempty"` // branch to create
	Commit string        `json:"commit,omitempty"` // commit of the branch
}

const maxPlan = 4 << 10 // bytes

// readPlan reads the plan of a worktree; ok is false if there is none.
func readPlan(record string) (m making, ok bool) {
	text, err := safeopen.ReadFile(record, maxPlan, safeopen.NoFollow)
	return m, err == nil && json.Unmarshal(text, &m) == nil && m.Repo != ""
}

// FinishWorktree completes the creation of a worktree, if there is a plan for it: it writes the files that are
// missing or incomplete, and deletes the plan. It returns the resulting tree. Errors are as for [Replace].
func FinishWorktree(ctx context.Context, e env.Env, s Spec, record string) (protocol.Tree, Rescued, error) {
	m, ok := readPlan(record)
	if !ok || !m.To.Valid() {
		return s.Tree, Rescued{}, nil
	}
	tree, found, err := Finish(ctx, e, s, orEmpty("", m.To), m.To)
	if err == nil {
		err = os.Remove(record)
	}
	return tree, found, err
}

// RemovePlanned removes an unused planned worktree, complete or not, with its branch, unless may returns an
// error. It reports whether there was a plan.
func RemovePlanned(ctx context.Context, e env.Env, path, record string, may func(path, commit string) error) (bool, error) {
	m, ok := readPlan(record)
	if !ok {
		return false, nil
	}
	if err := may(path, m.Commit); err != nil {
		return false, err
	}
	r, err := Find(ctx, e, m.Repo)
	if errors.Is(err, ErrNone) || errors.Is(err, fs.ErrNotExist) { // git has no record of it
		return true, safeopen.RemoveAll(path)
	}
	if err != nil {
		return false, err
	}
	if m.Branch != "" {
		root, err := os.OpenRoot(r.Common)
		if err != nil {
			return true, err
		}
		// left by a git that was killed together with it
		_ = root.Remove(filepath.Join("refs", "heads", filepath.FromSlash(m.Branch)) + lockSuffix)
		_ = root.Close()
	}
	return true, r.RemoveWorktree(ctx, path, m.Branch, m.Commit)
}

// PlanWorktree records that a worktree will be created with the files of a tree, at a commit, and with branch unless
// "". [Reset] writes the files or, if it was interrupted, [FinishWorktree]. The plan is deleted before anyone can work
// there.
func (r Repo) PlanWorktree(tree protocol.Tree, commit, branch, record string) error {
	text, _ := json.Marshal(making{tree, r.Root, branch, commit}) // encoding texts can't fail
	return durable.WriteFile(durable.OS(), record, append(text, '\n'), 0o600)
}

// SkipAbsent makes the user's git ignore the files that a sparse checkout omits from a new worktree: all
// missing files, unless they are missing from its tree as well. Files that differ from the commit are written, since
// they existed.
func (r Repo) SkipAbsent(ctx context.Context, s Spec, commit string, tree protocol.Tree) error {
	if _, sparse := setting(r.Keys, "core.sparsecheckout"); !sparse {
		return nil
	}
	ours := of(r.env.Environ, s)
	lacks, unread := ours.paths(ctx, "D", commit, sumOf(tree))
	changed, err := ours.paths(ctx, "AMT", commit, sumOf(tree))
	if err = errors.Join(unread, err); err == nil && len(changed) > 0 {
		_, err = ours.run(ctx, joined(changed), "checkout-index", "-f", "-q", "-u", "--ignore-skip-worktree-bits", "-z", "--stdin")
	}
	if err != nil {
		return err
	}
	g := r.user(ctx)
	out, err := g.run(ctx, nil, "ls-files", "-z")
	if err != nil {
		return err
	}
	return g.skip(ctx, r.Root, slices.DeleteFunc(fields(out), func(path string) bool {
		return slices.Contains(lacks, path)
	}))
}

// RefreshIndex updates the user's index, so that git knows that the files of a new worktree are unchanged
// without running filters, which it would for files as new as the index.
func (r Repo) RefreshIndex(ctx context.Context) error {
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(time.Second): // git can compare whole seconds
	}
	_, err := r.user(ctx).run(ctx, nil, "update-index", "-q", "--refresh")
	if ended(err, exitNo) {
		return nil // a snapshot differs from the commit
	}
	return err
}

// Reset replaces the files of a work tree, in which nobody works, with those of a tree. Ignored files and s.Skip
// stay unless they are in the way.
func Reset(ctx context.Context, e env.Env, s Spec, tree protocol.Tree) error {
	g := of(e.Environ, s)
	args := []string{"clean", "-q", "-f", "-f", "-d"}
	for _, path := range s.Skip { // including links created by a set-up
		args = append(args, "-e", "/"+ignorable(path))
	}
	if _, err := g.run(ctx, nil, args...); err != nil {
		return err
	}
	if err := g.sound(ctx, e, "", tree); err != nil {
		return err
	}
	_, err := g.run(ctx, nil, "read-tree", "--reset", "-u", sumOf(tree))
	return err
}

// ignorable escapes a path for .gitignore.
func ignorable(path string) string {
	return strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`, `[`, `\[`).Replace(path)
}

// Forget removes a thread's snapshots from the list of those to keep, and deletes its refs and those in more. Content
// shared with other threads stays.
func Forget(ctx context.Context, e env.Env, s Spec, more ...string) error {
	var gone strings.Builder
	for _, ref := range append(more, rescueRef(s.Ref)) {
		gone.WriteString("delete " + ref + "\n")
	}
	_, err := inStore(e, s.Git).run(ctx, []byte(gone.String()), "update-ref", "--stdin")
	_, lost := removeFromList(ctx, s.Git, func(l listed) bool { return l.thread == path.Base(s.Ref) })
	return errors.Join(err, lost)
}

// SetRef sets one of our refs to a commit.
func (r Repo) SetRef(ctx context.Context, s Spec, ref, commit string) error {
	_, err := inStore(r.env, s.Git).run(ctx, nil, "update-ref", ref, commit)
	return err
}

// TreeOf returns the tree of a commit.
func (r Repo) TreeOf(ctx context.Context, s Spec, commit string) (protocol.Tree, error) {
	sum, err := inStore(r.env, s.Git).line(ctx, "rev-parse", "-q", "--verify", commit+"^{tree}")
	return treeOf(sum), err
}

// NewRepo creates a repository without commits in a directory outside of any repository. It uses none of the
// user's templates and therefore no hooks.
func NewRepo(ctx context.Context, e env.Env, dir, function string) (Repo, error) {
	if _, err := newGit(e.Environ, dir).run(ctx, nil, "init", "-q", "--template=", "--object-format="+function); err != nil {
		return Repo{}, err
	}
	return Find(ctx, e, dir)
}

// FirstCommit creates the first commit of a repository, with the files of a tree. It doesn't change the work
// tree.
func (r Repo) FirstCommit(ctx context.Context, s Spec, tree protocol.Tree, message string) error {
	ours := inStore(r.env, s.Git)
	if err := ours.sound(ctx, r.env, "", tree); err != nil {
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
