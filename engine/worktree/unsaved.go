package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Unsaved lists the contents of a worktree that exist nowhere else. Check it before you remove a worktree.
// Ignored files don't count, except repositories with work in them.
type Unsaved struct {
	Files        []string // uncommitted files
	Left         []string // files that snapshots omit
	Submodules   []string // submodules with uncommitted files, unreachable commits or a changed commit
	Repositories []string
	Commits      []string // commits that no remaining ref reaches: short hash and subject
	Operation    string   // unfinished git operation
}

// None reports whether the list is empty.
func (u Unsaved) None() bool { return u.String() == "" }

// String lists each kind with its first paths.
func (u Unsaved) String() string {
	kinds := []string{"uncommitted files", "files in no snapshot", "work in submodules",
		"repositories", "commits on no branch"}
	var found []string
	for i, paths := range [][]string{u.Files, u.Left, u.Submodules, u.Repositories, u.Commits} {
		if len(paths) > 0 {
			found = append(found, kinds[i]+": "+snapshot.Abbreviate(paths))
		}
	}
	if u.Operation != "" {
		found = append(found, "an unfinished "+u.Operation)
	}
	return strings.Join(found, "; ")
}

// Limits of an inspection.
const (
	maxWalked = 2_000_000 // files; far more than a large worktree has
	maxWithin = 500       // repositories; each takes a few git processes
	maxReflog = 16 << 20  // bytes
	maxRefs   = 1 << 20   // bytes
	maxNamed  = 6         // commits; one more than the number shown
)

// inspection is an inspection in progress.
type inspection struct {
	snapshot.Repo
	env    env.Env
	base   string   // initial commit of the worktree; "" if unknown
	trees  []string // paths of nested repositories
	stores []string // git directories of submodules whose work trees were not found yet
	unseen []string // unreadable directories
	links  []string // paths of submodules
}

// work is the state of a work tree according to git.
type work struct {
	files     []string // files that differ from the newest commit
	unseen    []string // directories that git doesn't list
	commits   []string // commits that no remaining ref reaches
	operation string
}

// Inspect finds what exists only in a work tree. edited are files whose state is saved nowhere else, and left
// are paths that snapshots omit. base is the work tree's initial commit; "" if unknown.
func Inspect(ctx context.Context, e env.Env, r snapshot.Repo, base string, edited, left []string) (u Unsaved, err error) {
	in := &inspection{Repo: r, env: e, base: base}
	modules := filepath.Join(r.Dir, "modules")
	for _, root := range []string{r.Root, modules} {
		if err := in.walk(ctx, root); err != nil {
			return u, err
		}
	}
	slices.Sort(in.trees) // outer ones first
	own, err := in.look(ctx, r, "")
	if err != nil {
		return u, err
	}
	u.Commits, u.Operation = own.commits, own.operation
	left = slices.Concat(own.unseen, in.unseen, left)
	within := map[string]bool{}
	add := func(at string, has, submodule bool) {
		within[at] = true
		switch has = has || slices.Contains(left, at) || slices.Contains(edited, at); {
		case has && submodule:
			u.Submodules = append(u.Submodules, at)
		case has:
			u.Repositories = append(u.Repositories, at)
		}
	}
	for _, at := range in.trees {
		submodule := slices.Contains(in.links, at)
		repo, err := snapshot.Find(ctx, e, filepath.Join(r.Root, filepath.FromSlash(at)))
		if err != nil {
			add(at, true, submodule) // git cannot read it, so assume that it has work
			continue
		}
		in.stores = slices.DeleteFunc(in.stores, func(store string) bool { return store == repo.Dir })
		w, err := in.look(ctx, repo, at)
		if err != nil {
			return u, err
		}
		if w.files, err = repo.Status(ctx); err != nil {
			return u, err
		}
		add(at, w.operation != "" || len(w.files)+len(w.unseen)+len(w.commits) > 0, submodule)
	}
	for _, store := range in.stores { // submodules that are no longer checked out
		from := modules
		if !strings.HasPrefix(store, modules) { // it belongs to a nested repository
			from = in.Root
		}
		at := strings.NewReplacer("/.git/modules/", "/", "/modules/", "/").Replace(below(from, store))
		commits, err := in.unreached(ctx, snapshot.Repo{Dir: store, Common: store}, at)
		add(at, err != nil || len(commits) > 0, true)
	}
	isWithin := func(path string) bool { return within[path] }
	slices.Sort(left)
	u.Files, u.Left = slices.DeleteFunc(edited, isWithin), slices.Compact(slices.DeleteFunc(left, isWithin))
	return u, ctx.Err()
}

// below returns the path of a file relative to a directory, with slashes.
func below(dir, file string) string {
	return filepath.ToSlash(strings.TrimPrefix(file[len(dir):], string(filepath.Separator)))
}

// walk finds the repositories below a directory.
func (in *inspection) walk(ctx context.Context, root string) error {
	n := 0
	return filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
		rel, relErr := filepath.Rel(root, at)
		dir := filepath.Dir(at)
		switch n++; {
		case ctx.Err() != nil || relErr != nil:
			return errors.Join(ctx.Err(), relErr)
		case n > maxWalked || len(in.trees)+len(in.stores) > maxWithin:
			return &snapshot.RefusedError{Dir: root, Reason: fmt.Sprintf("has more than %d files or %d repositories",
				maxWalked, maxWithin)}
		case err != nil && !snapshot.IsGone(at):
			in.unseen = append(in.unseen, filepath.ToSlash(rel))
		case err != nil:
			return nil
		case rel == ".git": // the work tree's own
		case d.Name() == ".git":
			if git, _, ok := gitdir.Dirs(dir); ok && !snapshot.IsGone(filepath.Join(git, "HEAD")) { // it really is a git directory
				in.trees = append(in.trees, path.Dir(filepath.ToSlash(rel)))
			}
			if !d.IsDir() {
				return nil
			}
			if err := in.walk(ctx, filepath.Join(at, "modules")); err != nil {
				return err
			}
		case root != in.Root && d.Name() == "HEAD" && !d.IsDir() && !snapshot.IsGone(filepath.Join(dir, "objects")):
			in.stores = append(in.stores, dir)
		}
		if d != nil && d.IsDir() && (d.Name() == ".git" || root != in.Root && d.Name() == "objects") {
			return fs.SkipDir
		}
		return nil
	})
}

// look inspects the work tree at a path.
func (in *inspection) look(ctx context.Context, r snapshot.Repo, at string) (w work, err error) {
	if w.unseen, err = in.gitlinks(ctx, r, at); err != nil {
		return w, err
	}
	w.operation = r.Unfinished()
	w.commits, err = in.unreached(ctx, r, at)
	return w, err
}

// gitlinks records the submodules in a repository's index or newest commit. It returns those that are not
// checked out but contain files anyway, because git and snapshots overlook them.
func (in *inspection) gitlinks(ctx context.Context, r snapshot.Repo, at string) (unseen []string, err error) {
	out, err := in.Query(ctx, r.Dir, nil, "ls-files", "-s", "-z")
	if err == nil && r.Head != "" {
		var tree []byte
		tree, err = in.Query(ctx, r.Dir, nil, "ls-tree", "-r", "-z", r.Head)
		out = append(out, tree...)
	}
	for entry := range strings.SplitSeq(string(out), "\x00") {
		meta, name, _ := strings.Cut(entry, "\t")
		if !strings.HasPrefix(meta, snapshot.Gitlink) {
			continue
		}
		in.links = append(in.links, path.Join(at, name))
		dir := filepath.Join(r.Root, filepath.FromSlash(name))
		if within, err := os.ReadDir(dir); err == nil && len(within) > 0 && !slices.Contains(in.trees, path.Join(at, name)) {
			unseen = append(unseen, path.Join(at, name))
		}
	}
	return unseen, err
}

// goes reports whether a git directory is removed together with the worktree.
func (in *inspection) goes(dir string) bool {
	return slices.ContainsFunc([]string{in.Root, in.Dir}, func(of string) bool {
		rel, err := filepath.Rel(of, dir)
		return err == nil && filepath.IsLocal(rel) && of != in.Common
	})
}

// unreached returns the commits made in a work tree that no remaining ref reaches. If the whole repository is
// removed, fetched commits are still at the remote, and so are the initial commit and the one recorded for a
// submodule.
func (in *inspection) unreached(ctx context.Context, r snapshot.Repo, at string) ([]string, error) {
	been, without, err := leftBehind(r)
	if err != nil {
		return nil, err
	}
	own, err := in.Query(ctx, r.Dir, nil, "for-each-ref", "--format=%(objectname)", "refs/worktree")
	if err != nil {
		return nil, err
	}
	known := []byte(in.base)
	if in.base != "" && at != "" {
		// If this fails, it is not a submodule.
		known, _ = in.Query(ctx, in.Dir, nil, "rev-parse", "-q", "--verify", "--end-of-options", in.base+":"+at)
	}
	args := []string{"rev-list", "--ignore-missing", fmt.Sprint("--max-count=", maxNamed), "--oneline", "--stdin"}
	git := r.Common // excludes the refs of the work tree
	if in.goes(r.Common) {
		git, without = r.Dir, append(without, packedTags(r)...)
		args = append(args, "--all", "--not", "--remotes")
	} else {
		args = append(args, "--not", "--single-worktree", "--all")
	}
	revs := slices.Concat(been, []string{r.Head}, strings.Fields(string(own)))
	for _, commit := range append(without, strings.TrimSpace(string(known))) {
		revs = append(revs, "^"+commit)
	}
	// git would stop reading at an empty line.
	revs = slices.DeleteFunc(revs, func(rev string) bool { return strings.Trim(rev, "^") == "" })
	out, err := in.Query(ctx, git, []byte(strings.Join(revs, "\n")), args...)
	return strings.FieldsFunc(string(out), func(r rune) bool { return r == '\n' }), err
}

// packedTags returns the commits of tags that came with a clone, which git packs immediately.
func packedTags(r snapshot.Repo) (commits []string) {
	text, err := safeopen.ReadFile(filepath.Join(r.Common, "packed-refs"), maxRefs, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	for line := range strings.Lines(string(text)) {
		if commit, ref, _ := strings.Cut(line, " "); strings.HasPrefix(ref, "refs/tags/") {
			commits = append(commits, commit)
		}
	}
	return commits
}

// leftBehind returns the commits in a work tree's reflog, and those among them that git itself has replaced,
// as in an amendment or a rebase.
func leftBehind(r snapshot.Repo) (commits, replaced []string, err error) {
	text, err := safeopen.ReadFile(filepath.Join(r.Dir, "logs", "HEAD"), maxReflog, safeopen.NoFollow)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, nil, err
	}
	isReplaced := map[string]bool{}                 // replaced in every occurrence
	for line := range strings.Lines(string(text)) { // old, new, who and when, a tab, message
		refs, why, _ := strings.Cut(line, "\t")
		words := strings.Fields(refs)
		if len(words) < 2 || strings.Trim(words[0]+words[1], "0123456789abcdef") != "" {
			continue
		}
		action, _, _ := strings.Cut(why, ":")
		if action == "commit (amend)" || strings.Contains(action, "rebase") { // includes pulls that rebase
			isReplaced[words[0]] = true
		}
		isReplaced[words[1]] = false
	}
	for commit, is := range isReplaced {
		if is {
			replaced = append(replaced, commit)
		} else {
			commits = append(commits, commit)
		}
	}
	return commits, replaced, nil
}

// WithFiles returns the thread at head if its last step has a snapshot, else nil.
func (e Keeper) WithFiles(ctx context.Context, head protocol.Hash) *thread.Thread {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil || t.Last.Files.Tree == "" {
		return nil // the step reports a damaged chain
	}
	return t
}

// onlyInWorktree returns what exists only in a thread's worktree. kept are snapshots that stay after the
// worktree is removed; commits with a ref also stay. If the worktree is gone, the result is empty. held means
// that the caller has locked the work tree.
func (e Keeper) onlyInWorktree(ctx context.Context, id string, w *heads.Workspace, held bool,
	kept ...protocol.Tree) (only Unsaved, err error) {
	if w == nil || w.Mode != InWorktree || snapshot.IsGone(w.Root) {
		return only, nil
	}
	k, err := e.open(ctx, id, w.Root, w, held)
	if err != nil {
		return only, fmt.Errorf("inspect worktree %s: %w", cwd.Shown(w.Root), err)
	}
	defer k.Release()
	edited, err := k.differing(ctx, kept)
	if err == nil {
		only, err = k.look(ctx, w.Base, edited)
	}
	if err != nil {
		return only, fmt.Errorf("inspect worktree %s: %w", cwd.Shown(w.Root), err)
	}
	return only, nil
}

// look finds what exists only in the work tree. edited are files whose state is saved nowhere else, and base
// is the work tree's initial commit.
func (k *Checkout) look(ctx context.Context, base string, edited []string) (only Unsaved, err error) {
	left := k.Left
	if k.Repo.Head != "" {
		// Snapshots overlook files where a commit replaced a submodule by files.
		_, apart, err := k.Repo.WithSubmodulesOf(ctx, k.Spec, k.Spec.Tree, k.Repo.Head)
		if err != nil {
			return only, err
		}
		if len(apart) > 0 {
			overlooked, err := k.Repo.Status(ctx, apart...)
			if err != nil {
				return only, err
			}
			left = slices.Concat(left, overlooked)
		}
	}
	return Inspect(ctx, k.by.Env, k.Repo, base, edited, left)
}

// differing returns the paths whose state is neither in the newest commit nor in another tree.
func (k *Checkout) differing(ctx context.Context, others []protocol.Tree) (paths []string, err error) {
	head := protocol.Tree("")
	if k.Repo.Head != "" {
		if head, err = k.Repo.TreeOf(ctx, k.Spec, k.Repo.Head); err != nil {
			return nil, err
		}
	}
	for i, tree := range append([]protocol.Tree{head}, others...) {
		differ, err := k.Repo.ChangedPaths(ctx, k.Spec, tree, k.Spec.Tree)
		switch {
		case err != nil && i == 0:
			return nil, err
		case err != nil: // it is stored elsewhere, or not at all
			continue
		case i == 0:
			paths = differ
		}
		paths = slices.DeleteFunc(paths, func(path string) bool {
			_, differs := slices.BinarySearch(differ, path) // git sorts paths
			return !differs
		})
	}
	return paths, nil
}

// treesOf returns the snapshots at a head and at the start of its thread.
func (e Keeper) treesOf(ctx context.Context, head protocol.Hash) (kept []protocol.Tree) {
	chain, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return nil // a damaged thread can still be ended
	}
	if w := chain.Start.Workspace; w != nil && w.Tree != "" {
		kept = append(kept, w.Tree)
	}
	if step, err := e.FilesOf(ctx, chain); err == nil {
		kept = append(kept, step.After)
	}
	return kept
}

// Ended is a thread that has just ended.
type Ended struct {
	ID        string
	Head      protocol.Hash
	Workspace *heads.Workspace
	Killed    bool
	Locked    bool // its work tree is locked
}

// RemoveUnused removes the worktree of an ended thread if nothing was made in it: no commit and no file, not
// even an ignored one. It also removes a child's worktree if its last step has a snapshot, because it is no
// longer needed then. If something exists only in the worktree, it stays and RemoveUnused warns.
func (e Keeper) RemoveUnused(ctx context.Context, l Ended) {
	w := l.Workspace
	if w == nil || w.Mode != InWorktree || snapshot.IsGone(w.Root) {
		return
	}
	only, err := e.onlyInWorktree(ctx, l.ID, w, l.Locked, e.treesOf(ctx, l.Head)...)
	switch {
	case err != nil:
		e.Warn("kept the worktree of thread " + l.ID + ": " + err.Error())
		return
	case !only.None():
		e.Warn("kept worktree " + cwd.Shown(w.Root) + ", which has the only copy of " + cwd.Shown(only.String()))
		return
	}
	repo, err := snapshot.Find(ctx, e.Env, w.Root)
	if err != nil || repo.Head != w.Base {
		return
	}
	chain, err := thread.Open(ctx, e.Read, l.Head)
	kept := err == nil && chain.Start.Child != nil && chain.Last != nil && chain.Last.Files != nil && !l.Killed
	if !kept {
		if made, err := e.onlyInWorktree(ctx, l.ID, w, l.Locked); err != nil || !made.None() {
			return
		}
		if ignores, err := repo.Ignores(ctx); err != nil || ignores {
			return
		}
	}
	switch err := repo.RemoveWorktree(ctx, e.Dirs.Worktree(l.ID), w.Branch, w.Base); {
	case err != nil:
		e.Warn("could not remove worktree " + cwd.Shown(w.Root) + " of an ended thread: " + err.Error())
	case !kept:
		e.Warn("removed worktree " + cwd.Shown(w.Root) + ", which has no changes")
	}
}

// unused returns a [*snapshot.RefusedError] if a worktree that never got its thread contains more than files.
// The files may be incomplete copies of commit, so they don't count.
func (e Keeper) unused(ctx context.Context, path, commit string) error {
	made, err := snapshot.Find(ctx, e.Env, path)
	if err != nil || !gitdir.Same(made.Root, path) {
		return ctx.Err()
	}
	has, err := Inspect(ctx, e.Env, made, commit, nil, nil)
	if err != nil {
		return err
	}
	if !has.None() {
		return &snapshot.RefusedError{Dir: path, Reason: "kept; it has the only copy of " + has.String()}
	}
	return nil
}

// removePlanned removes a thread's worktree if its creation was interrupted, unless [Keeper.unused] returns an error.
func (e Keeper) removePlanned(ctx context.Context, id string) (removed bool, err error) {
	return snapshot.RemovePlanned(ctx, e.Env, e.Dirs.Worktree(id), e.RunDir(id).File(runfiles.RestoreFile),
		func(path, commit string) error { return e.unused(ctx, path, commit) })
}
