package worktree

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// NewTree says which worktree a thread gets.
type NewTree struct {
	ID      string
	Repo    snapshot.Repo
	Dir     string // of the work tree in which the thread would work otherwise
	Base    string // commit
	Tree    protocol.Tree
	Name    string // of the workflow, for the branch; "": no branch
	Foreign bool   // its files come from elsewhere
	// Branch is one that the worktree had before.
	Branch string
}

// AddWorktree makes the worktree of a thread: at a commit, with the files of a tree, or
// of that commit. The thread works at the same place below its root. Until [Keeper.Created]
// the worktree is nobody's.
func (e Keeper) AddWorktree(ctx context.Context, n NewTree) (w *heads.Workspace, err error) {
	if n.Base == "" {
		return nil, fault.New(protocol.CodeFailed, "%s has no commit yet, and a worktree begins with one",
			cwd.Shown(n.Repo.Root)).Because("no-commit")
	}
	rel, err := filepath.Rel(n.Repo.Root, n.Dir)
	if err != nil || !filepath.IsLocal(rel) {
		return nil, fmt.Errorf("%s is not in %s", cwd.Shown(n.Dir), cwd.Shown(n.Repo.Root))
	}
	path := e.Dirs.Worktree(n.ID)
	if err := durable.MkdirAll(e.FS, filepath.Dir(path), 0o700); err != nil {
		return nil, err
	}
	branch := n.Branch
	if n.Name != "" {
		branch = branchOf(n.Name, n.ID)
		if _, taken := n.Repo.Commit(ctx, "refs/heads/uwf"); taken { // git has no branch uwf/x beside it
			branch = strings.Replace(branch, "/", "-", 1)
		}
	}
	if tip, ok := n.Repo.Commit(ctx, "refs/heads/"+n.Branch); ok && n.Branch != "" {
		n.Base = tip
	}
	made := branch
	if n.Branch != "" {
		made = "" // it was there before
	}
	plan, err := e.plan(ctx, &n, made)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			left := errors.Join(n.Repo.RemoveWorktree(context.WithoutCancel(ctx), path, made, n.Base), os.RemoveAll(plan))
			if err = notMade(n, err); left != nil && !strings.Contains(err.Error(), left.Error()) {
				err = errors.Join(err, left)
			}
		}
	}()
	if err := n.Repo.AddWorktree(ctx, path, n.Base, branch); err != nil {
		return nil, err
	}
	if path, err = cwd.Real(path); err != nil {
		return nil, err
	}
	repo, err := snapshot.Find(ctx, e.Env, path)
	if err != nil {
		return nil, err
	}
	spec, err := e.SpecOf(repo, n.ID)
	if err != nil {
		return nil, err
	}
	if err := snapshot.Fill(ctx, e.Env, spec, n.Tree); err != nil {
		return nil, fmt.Errorf("write its files: %w", err)
	}
	if err := repo.SkipAbsent(ctx, spec, n.Base, n.Tree); err != nil {
		return nil, fmt.Errorf("leave out what a sparse checkout does: %w", err)
	}
	if repo.LacksLFS() {
		if err := repo.RefreshIndex(ctx); err != nil {
			return nil, err
		}
		e.Warn("git-lfs is not installed: its files in " + cwd.Shown(path) + " are pointers; install it, and then: git " +
			"lfs install && git lfs pull")
	}
	root := filepath.Join(path, rel)
	if err := os.MkdirAll(root, 0o777); err != nil {
		return nil, err
	}
	if err := e.furnish(ctx, n.Repo, repo, n.ID, root, n.Foreign); err != nil {
		return nil, err
	}
	return &heads.Workspace{Mode: InWorktree, Root: root, Repo: repo.Common, Base: n.Base, Branch: branch}, nil
}

// notMade says that git could not make a worktree, and how to see why or do without.
func notMade(n NewTree, err error) error {
	if errors.As(err, new(*protocol.Error)) || errors.Is(err, context.Canceled) {
		return err
	}
	failed := &protocol.Error{Code: protocol.CodeFailed, Err: err,
		Message: fmt.Sprintf("the worktree of thread %s cannot be made in %s: %s", n.ID, cwd.Shown(n.Repo.Root),
			cwd.Shown(err.Error()))}
	if strings.Contains(err.Error(), "filter lfs failed") { // uwf fetches nothing
		return failed.Because("lfs-content-missing", "root", n.Repo.Root)
	}
	return failed.Because("worktree-not-made", "root", n.Repo.Root, "base", n.Base)
}

// plan records in the run directory of the thread which files its worktree is to have, and
// which branch is made. If that is cut off, the thread's next step finishes it, or, if there
// is none, [Keeper.Sweep] does.
func (e Keeper) plan(ctx context.Context, n *NewTree, branch string) (record string, err error) {
	spec, err := e.SpecOf(n.Repo, n.ID)
	if err != nil {
		return "", err
	}
	dir := e.RunDir(n.ID)
	if err := dir.Make(); err != nil {
		return "", err
	}
	if n.Tree != "" {
		if err := n.Repo.Seed(ctx, spec.Git, true); err != nil {
			return "", err
		}
		if err := e.fetch(ctx, spec.Git, n.Tree); err != nil {
			return "", err
		}
	}
	record = dir.File(runfiles.RestoreFile)
	n.Tree, err = snapshot.PlanWorktree(ctx, e.Env, n.Repo, spec, n.Tree, n.Base, branch, record)
	return record, err
}

// branchOf is the branch of a thread's worktree: uwf/<workflow>-<end of the id>, or with a hyphen
// for the slash if there is a branch called uwf.
func branchOf(workflow, id string) string {
	name := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || r == '-' || r == '_' {
			return r
		}
		return '-'
	}, strings.ToLower(workflow))
	const end = 6
	return "uwf/" + strings.Trim(name, "-") + "-" + strings.ToLower(id[len(id)-end:])
}

// startTree is the worktree of a new thread.
func (e Keeper) startTree(ctx context.Context, id, workflow, dir string, o Options) (*heads.Workspace, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTreeError(dir, err)
	}
	n := NewTree{ID: id, Repo: repo, Dir: dir, Base: repo.Head, Name: workflow}
	if o.Base != "" {
		var ok bool
		if n.Base, ok = repo.Commit(ctx, o.Base); !ok {
			return nil, fault.New(protocol.CodeNotFound, "there is no commit %s in %s", cwd.Shown(o.Base),
				cwd.Shown(repo.Root)).Because("no-such-commit")
		}
	}
	if o.Dirty {
		k, err := e.Open(ctx, id, dir, &heads.Workspace{Mode: InPlace, Root: dir})
		if err != nil {
			return nil, err
		}
		n.Tree = k.Spec.Tree
		k.Release()
	}
	return e.AddWorktree(ctx, n)
}

// treeOf is the work tree of a thread, and where it works in it; if its worktree is
// gone, the same place in that of the repository, or in the one that the thread was
// started in: that of a submodule, or of a bare repository, is not beside its git directory.
func (e Keeper) treeOf(ctx context.Context, w *heads.Workspace, of string) (repo snapshot.Repo, dir string, err error) {
	repo, err = snapshot.Find(ctx, e.Env, w.Root)
	if w.Mode != InWorktree || err == nil && (sameFile(repo.Common, w.Repo) || isGone(w.Repo)) {
		return repo, w.Root, err
	}
	rel, ok := cwd.Below(e.Dirs.Worktree(of), w.Root)
	if !ok {
		rel = "."
	}
	for _, dir := range []string{filepath.Dir(w.Repo), e.startedIn(ctx, of)} {
		if dir == "" {
			continue
		}
		if other, lost := snapshot.Find(ctx, e.Env, dir); lost == nil && sameFile(other.Common, w.Repo) {
			return other, filepath.Join(other.Root, rel), nil
		}
	}
	return repo, "", cmp.Or(err, snapshot.ErrNone)
}

// startedIn is the directory that a thread was started in; "": it is not known.
func (e Keeper) startedIn(ctx context.Context, id string) string {
	all, _ := heads.Standings(ctx, e.Heads) // a line that cannot be read is none of ours
	t, err := thread.Open(ctx, e.Read, all[id].Head)
	if err != nil {
		return ""
	}
	return t.Start.Cwd
}

// Recreate makes the worktree of an ended thread again that is to go on, with the files
// of its last step, if it was removed, and that of a child which is to take its first step,
// with the files that it begins with. That of another active thread is missed.
func (e Keeper) Recreate(ctx context.Context, t Thread) error {
	w, path := t.Facts.Workspace, e.Dirs.Worktree(t.ID)
	if w == nil || w.Mode != InWorktree || !t.Ended && t.Facts.Parent == nil {
		return nil
	}
	chain, err := thread.Open(ctx, e.Read, t.Head)
	if err != nil || !t.Ended && chain.Last != nil && (t.Facts.Imported == nil || !e.RunDir(t.ID).Read().Missing) {
		return err
	}
	if err := snapshot.RemoveHalfMade(ctx, w.Repo, filepath.Dir(path)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := os.Lstat(path); err == nil && !t.Ended && e.RunDir(t.ID).Read().Missing {
		cut, err := snapshot.Find(ctx, e.Env, path) // its maker was killed
		if err == nil {
			err = e.unused(ctx, path, w.Base)
		}
		if err == nil {
			err = cut.RemoveWorktree(ctx, path, "", "")
		}
		if err != nil {
			return err
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return e.treeAgain(ctx, t, chain)
}

// treeAgain makes a thread's worktree again, with the files of its last step, or for the
// first time, with those that it begins with.
func (e Keeper) treeAgain(ctx context.Context, t Thread, chain *thread.Thread) error {
	w := t.Facts.Workspace
	repo, dir, err := e.treeOf(ctx, w, t.ID)
	if err != nil {
		return nil // where it works is gone: that is said as for every thread
	}
	n := NewTree{ID: t.ID, Repo: repo, Dir: dir, Base: w.Base, Branch: w.Branch, Foreign: t.Facts.Imported != nil}
	if last, err := e.FilesOf(ctx, chain); err == nil {
		n.Tree = last.After
	} else if chain.Last == nil && chain.Start.Workspace != nil {
		n.Tree = chain.Start.Workspace.Tree
	}
	if _, err = e.AddWorktree(ctx, n); err != nil {
		return err
	}
	return e.Created(t.ID)
}

// A worktree has the files that git knows. Other things that a run needs, such as keys and
// libraries, are copied from the original work tree or made by a command of the user's. None
// of it is in a snapshot.

// Bounds of the set-up.
const (
	setupTime  = 30 * time.Minute
	setupGrace = 2 * time.Second
	setupTail  = 4 << 10 // bytes of its output that are told when it fails
)

// furnish makes a new worktree one that can run. dir is where the thread works in it;
// foreign: its files come from elsewhere, so nothing of them runs unasked.
func (e Keeper) furnish(ctx context.Context, from, to snapshot.Repo, id, dir string, foreign bool) error {
	if _, err := include(ctx, from, to); err != nil {
		return fmt.Errorf("take along what git ignores: %w", err)
	}
	c, err := e.Config(ctx)
	if err != nil || c.Workspace == nil {
		return err
	}
	if err := link(from, to, c.Workspace.Link); err != nil {
		return err
	}
	argv := c.Workspace.Setup
	switch {
	case len(argv) == 0:
		return nil
	case foreign:
		e.Warn(fmt.Sprintf("the files of this worktree come from elsewhere: workspace.setup is not run in it; if you "+
			"trust them: cd %s && %s", plaintext.Word(dir), plaintext.Literal(argv)))
		return nil
	}
	return e.setUp(ctx, id, dir, from.Root, argv)
}

// setUp runs the command of the user's config, once, and keeps what it prints.
func (e Keeper) setUp(ctx context.Context, id, dir, from string, argv []string) (err error) {
	exe, err := proc.LookPath(argv[0], dir, e.Env.Environ)
	if err != nil {
		return fault.New(protocol.CodeFailed, "workspace.setup: %s: %v", plaintext.Word(argv[0]),
			err).Because("setup-not-found")
	}
	run := e.RunDir(id)
	if err := run.Make(); err != nil {
		return err
	}
	log, err := os.OpenFile(run.File(runfiles.SetupFile), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	ctx, cancel := context.WithTimeout(ctx, setupTime)
	defer cancel()
	environ := []string{"UWF_WORKTREE_FROM=" + from}
	for _, entry := range e.Env.Environ {
		if !strings.HasPrefix(entry, "GIT_") {
			environ = append(environ, entry)
		}
	}
	cmd := proc.Command{Path: exe, Args: argv[1:], Dir: dir, Env: environ, Session: true, WithParent: true, Stdout: log,
		Stderr: log}
	child, end, err := e.start(ctx, cmd)
	if err != nil {
		return fmt.Errorf("workspace.setup: %w", err)
	}
	status, err := child.Wait(ctx, setupGrace)
	err = errors.Join(err, end())
	if err == nil && status.Code == 0 {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("exit status %d", status.Code)
	}
	message := fmt.Sprintf("the set-up of the worktree failed: %s: %v%s", plaintext.Literal(argv), err, tail(log))
	return (&protocol.Error{Code: protocol.CodeFailed, Message: message, Err: err}).Because("setup-failed")
}

// tail is the end of what the set-up has printed.
func tail(log *os.File) string {
	size, err := log.Seek(0, io.SeekEnd)
	if err != nil {
		return ""
	}
	text := make([]byte, min(size, setupTail))
	if _, err := log.ReadAt(text, size-int64(len(text))); err != nil && !errors.Is(err, io.EOF) {
		return ""
	}
	text = bytes.TrimSpace(bytes.ToValidUTF8(text, nil))
	if len(text) == 0 {
		return ""
	}
	return "\n" + plaintext.Escape(string(text))
}

// Where the files of a fork are.
const (
	FilesWorktree = "worktree" // in a worktree of its own, as they were at that step
	FilesHere     = "here"     // where the other thread has them, as they were at that step
	FilesKeep     = "keep"     // where the other thread has them, as they are
)

// Fork is a thread that is about to begin at a node of another one.
type Fork struct {
	Thread string
	At     *thread.Thread // the chain up to that node
	Facts  heads.Facts    // what is known of it already
	Moved  bool           // a person has said where it works
	// Files are [FilesWorktree], [FilesHere] or [FilesKeep]; "": a worktree, if the files
	// are kept. Before names a step: they are those before it. Detached: the worktree is on
	// no branch.
	Files    string
	Before   protocol.Hash
	Detached bool
}

// Fork is the workspace of a fork.
func (e Keeper) Fork(ctx context.Context, f Fork) (*heads.Workspace, error) {
	t, facts, from := f.At, f.Facts, f.Facts.Fork.Thread
	of, err := e.Heads.Facts(ctx, from)
	if from == "" || err != nil {
		return facts.Workspace, err
	}
	w := of.Workspace
	kept := w != nil && w.Mode != ModeNone || of.Imported != nil && t.Last != nil && t.Last.Files != nil
	switch {
	case f.Files != "" && !kept:
		return nil, noFiles(t.Head, false)
	case facts.Foreign() || !kept:
		return facts.Workspace, nil
	case f.Moved && f.Files == FilesWorktree:
		w = &heads.Workspace{Mode: InPlace, Root: facts.Workspace.Root}
	case f.Moved:
		if f.Files == "" && t.Last != nil && t.Last.Files != nil {
			e.Warn("the fork works with the files of " + cwd.Shown(facts.Workspace.Root) + " as they are, not with those of " +
				"that step")
		}
		if here, err := e.inPlace(ctx, facts.Workspace.Root); err == nil {
			return here, nil
		}
		return facts.Workspace, nil
	case w == nil:
		return facts.Workspace, nil
	case f.Files == FilesKeep && w.Mode == InPlace:
		return w, nil
	case w.Mode != InPlace && (f.Files == FilesKeep || f.Files == FilesHere):
		return nil, fault.New(protocol.CodeFailed, "%s belongs to thread %s", cwd.Shown(w.Root),
			from).Because("worktree-of-another")
	}
	tree, err := e.treeAt(ctx, t, f.Before, from)
	var none *NoFilesError
	if errors.As(err, &none) && f.Files == "" && w.Mode == InPlace {
		e.Warn(none.Error() + ": the fork works with the files as they are")
		return w, nil
	}
	if err != nil {
		return nil, err
	}
	if f.Files == FilesHere {
		return w, e.filesHere(ctx, f.Thread, w, tree, from)
	}
	repo, dir, err := e.treeOf(ctx, w, from)
	if err != nil {
		return nil, noWorkTreeError(w.Root, err)
	}
	base, ok := repo.Commit(ctx, w.Base)
	if !ok {
		base = repo.Head
	}
	name := ""
	if !f.Detached {
		wf, err := t.Workflow(ctx)
		if err != nil {
			return nil, err
		}
		name = cmp.Or(wf.Name, "thread")
	}
	return e.AddWorktree(ctx, NewTree{ID: f.Thread, Repo: repo, Dir: dir, Base: base, Tree: tree, Name: name,
		Foreign: facts.Imported != nil})
}

// treeAt is the state of the files at a node of a thread: that before a step, if one is
// named, else that after the node; before the thread's first step, what that began with.
func (e Keeper) treeAt(ctx context.Context, t *thread.Thread, before protocol.Hash, of string) (protocol.Tree, error) {
	if before == "" && t.Last != nil {
		step, err := e.FilesOf(ctx, t)
		return step.After, err
	}
	if before == "" {
		now, err := heads.Find(ctx, e.Heads, of)
		if err != nil {
			return "", err
		}
		chain, err := thread.Open(ctx, e.Read, now.Head)
		if err != nil {
			return "", err
		}
		for s, err := range chain.Steps(ctx) {
			if err != nil {
				return "", err
			}
			before = s.Hash
		}
		if before == "" {
			return "", noFiles(t.Head, false)
		}
	}
	first, err := thread.Open(ctx, e.Read, before)
	if err != nil {
		return "", err
	}
	step, err := e.FilesOf(ctx, first)
	return step.Before, err
}

// filesHere puts the files of a fork where the other thread works, if they are those
// that this one has left.
func (e Keeper) filesHere(ctx context.Context, id string, w *heads.Workspace, tree protocol.Tree, of string) error {
	now, err := heads.Find(ctx, e.Heads, of)
	if err != nil {
		return err
	}
	last, err := e.StepFiles(ctx, now.Head)
	if err != nil {
		return err
	}
	k, err := e.Open(ctx, id, w.Root, w)
	if err != nil {
		return err
	}
	defer k.Release()
	_, err = e.follow(ctx, k, id, now.Head, last.After, tree)
	if coded := (*protocol.Error)(nil); errors.As(err, &coded) {
		coded.Reasons = slices.DeleteFunc(coded.Reasons, func(r protocol.Reason) bool { return r.Name == filesStay })
		coded.Because("fork-files-differ")
	}
	return errors.Join(err, e.forget(id, err))
}

// forget removes the run directory of a thread that was not made, because of an error.
func (e Keeper) forget(id string, err error) error {
	if err == nil {
		return nil
	}
	return os.RemoveAll(e.RunDir(id).Path)
}

// A new worktree needs what git does not know: ignored files that a list names, and links to
// directories.

// includeFile lists, as .gitignore does, files that git ignores and that a new worktree
// needs all the same. Other tools read it, too.
const includeFile = ".worktreeinclude"

// Bounds of what is copied into a new worktree.
const (
	maxIncluded      = 100_000
	maxIncludedBytes = 4 << 30
	maxList          = 1 << 20 // bytes
)

// linksFile in a worktree's git directory lists the links to another work tree, one path per
// line.
const linksFile = "uwf-links"

// include copies the files that a work tree's [includeFile] names and that git ignores into
// another work tree, unless something is already in their place. It returns how many.
func include(ctx context.Context, r, to snapshot.Repo) (n int, err error) {
	list := filepath.Join(r.Root, includeFile)
	text, err := safeopen.ReadFile(list, maxList, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "" {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("read %s: %w", list, err)
	}
	out, err := r.Query(ctx, "", nil, "ls-files", "-o", "-i", "--exclude-from="+list, "-z")
	if err != nil || len(out) == 0 {
		return 0, err
	}
	// Files that are only untracked, not ignored, would enter the other work tree's snapshots.
	ignored, err := r.Query(ctx, "", out, "check-ignore", "-z", "--stdin")
	var none *snapshot.GitError
	if err != nil && (!errors.As(err, &none) || none.Status != 1) {
		return 0, err
	}
	paths := strings.FieldsFunc(string(ignored), func(r rune) bool { return r == 0 })
	if len(paths) > maxIncluded {
		return 0, fmt.Errorf("%s names %d files, of which %d at most are copied: workspace.link leads to a directory "+
			"instead", includeFile, len(paths), maxIncluded)
	}
	from, err := os.OpenRoot(r.Root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = from.Close() }()
	into, err := os.OpenRoot(to.Root)
	if err != nil {
		return 0, err
	}
	defer func() { _ = into.Close() }()
	room := int64(maxIncludedBytes)
	for _, name := range paths {
		if strings.HasSuffix(name, "/") {
			continue // a nested repository
		}
		copied, err := takeAlong(from, into, filepath.FromSlash(name), &room)
		if err != nil {
			return n, fmt.Errorf("copy %s: %w", name, err)
		}
		if copied {
			n++
		}
		if ctx.Err() != nil {
			return n, ctx.Err()
		}
	}
	return n, nil
}

// takeAlong copies a file or a link, if nothing is in its place.
func takeAlong(from, to *os.Root, name string, room *int64) (bool, error) {
	info, err := from.Lstat(name)
	if err != nil {
		return false, nil //nolint:nilerr // gone meanwhile
	}
	if _, err := to.Lstat(name); err == nil {
		return false, nil
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return false, err
		}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := from.Readlink(name)
		if err != nil {
			return false, err
		}
		return true, to.Symlink(target, name)
	}
	if !info.Mode().IsRegular() {
		return false, nil
	}
	if *room -= info.Size(); *room < 0 {
		return false, fmt.Errorf("the files hold more than %d GB", maxIncludedBytes>>30)
	}
	in, err := safeopen.OpenIn(from, name)
	if err != nil {
		return false, err
	}
	defer func() { _ = in.Close() }()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return false, err
	}
	_, err = io.Copy(out, in)
	return true, errors.Join(err, out.Close())
}

// link links directories of a work tree into another one; snapshots leave these links out. It
// skips directories that do not exist or whose place is taken.
func link(r, to snapshot.Repo, dirs []string) error {
	var made []string
	into, err := os.OpenRoot(to.Root)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	for _, dir := range dirs {
		dir = path.Clean(filepath.ToSlash(dir))
		target := filepath.Join(r.Root, filepath.FromSlash(dir))
		if info, err := os.Stat(target); err != nil || !info.IsDir() || !filepath.IsLocal(dir) || dir == "." {
			continue
		}
		if _, err := into.Lstat(filepath.FromSlash(dir)); err == nil {
			continue
		}
		if above := path.Dir(dir); above != "." {
			if err := into.MkdirAll(filepath.FromSlash(above), 0o755); err != nil {
				return err
			}
		}
		made = append(made, dir)
		// Listed before it exists, so that a snapshot in between leaves it out.
		if err := durable.Replace(durable.OS(), filepath.Join(to.Dir, linksFile), []byte(strings.Join(made, "\n")+"\n"),
			0o600); err != nil {
			return err
		}
		if err := into.Symlink(target, filepath.FromSlash(dir)); err != nil {
			return fmt.Errorf("link %s: %w", dir, err)
		}
	}
	return nil
}

// links are the paths that [link] has made.
func links(r snapshot.Repo) []string {
	text, err := safeopen.ReadFile(filepath.Join(r.Dir, linksFile), maxList, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
