package worktree

import (
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
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// NewTree describes a thread's new worktree.
type NewTree struct {
	ID      string
	Repo    snapshot.Repo
	Dir     string // where the thread would work otherwise
	Base    string // commit
	Tree    protocol.Tree
	Name    string // workflow name for the branch; "" means no branch
	Foreign bool   // its files come from another machine
	// Branch is the branch of the worktree's predecessor.
	Branch string
}

// AddWorktree creates a thread's worktree at a commit, with the files of a tree or of that commit. The thread
// works in the same subdirectory as before. Until [Keeper.Created] is called, the worktree belongs to no
// thread.
func (e Keeper) AddWorktree(ctx context.Context, n NewTree) (w *heads.Workspace, err error) {
	if n.Base == "" {
		return nil, fault.New(protocol.CodeFailed, "%s has no commits, and a worktree needs one",
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
		if _, taken := n.Repo.Commit(ctx, "refs/heads/uwf"); taken { // git cannot create a branch uwf/x next to it
			branch = strings.Replace(branch, "/", "-", 1)
		}
	}
	if tip, ok := n.Repo.Commit(ctx, "refs/heads/"+n.Branch); ok && n.Branch != "" {
		n.Base = tip
	}
	made := branch
	if n.Branch != "" {
		made = "" // it existed before
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
	if err := snapshot.Reset(ctx, e.Env, spec, n.Tree); err != nil {
		return nil, fmt.Errorf("write files: %w", err)
	}
	if err := repo.SkipAbsent(ctx, spec, n.Base, n.Tree); err != nil {
		return nil, fmt.Errorf("apply sparse checkout: %w", err)
	}
	if repo.LacksLFS() {
		if err := repo.RefreshIndex(ctx); err != nil {
			return nil, err
		}
		e.Warn("git-lfs is not installed, so its files in " + cwd.Shown(path) + " are pointers; install it, then: git lfs install && git lfs pull")
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

// notMade returns the error for a worktree that git could not create, with the facts for a hint.
func notMade(n NewTree, err error) error {
	if errors.As(err, new(*protocol.Error)) || errors.Is(err, context.Canceled) {
		return err
	}
	failed := &protocol.Error{Code: protocol.CodeFailed, Err: err,
		Message: fmt.Sprintf("cannot create the worktree of thread %s in %s: %s", n.ID, cwd.Shown(n.Repo.Root),
			cwd.Shown(err.Error()))}
	if strings.Contains(err.Error(), "filter lfs failed") { // uwf doesn't fetch LFS objects
		return failed.Because("lfs-content-missing", "root", n.Repo.Root)
	}
	return failed.Because("worktree-not-made", "root", n.Repo.Root, "base", n.Base)
}

// plan records the planned files and branch of a worktree in the thread's run directory. If the creation is
// interrupted, the thread's next step finishes it, or [Keeper.Sweep] if there is none.
func (e Keeper) plan(ctx context.Context, n *NewTree, branch string) (record string, err error) {
	spec, err := e.SpecOf(n.Repo, n.ID)
	if err != nil {
		return "", err
	}
	dir := e.RunDir(n.ID)
	if err := dir.Make(); err != nil {
		return "", err
	}
	if err := n.Repo.Seed(ctx, spec.Git, true); err != nil {
		return "", err
	}
	if n.Tree == "" {
		n.Tree, err = n.Repo.TreeOf(ctx, spec, n.Base)
	} else {
		err = e.fetch(ctx, spec.Git, n.Tree)
	}
	if err != nil {
		return "", err
	}
	record = dir.File(runfiles.RestoreFile)
	return record, n.Repo.PlanWorktree(n.Tree, n.Base, branch, record)
}

// branchOf returns the branch of a thread's worktree: uwf/<workflow>-<end of the ID>. If a branch uwf exists,
// the slash becomes a hyphen.
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

// startTree creates the worktree of a new thread.
func (e Keeper) startTree(ctx context.Context, id, workflow, dir string, o Options) (*heads.Workspace, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTreeError(dir, err)
	}
	n := NewTree{ID: id, Repo: repo, Dir: dir, Base: repo.Head, Name: workflow}
	if o.Base != "" {
		var ok bool
		if n.Base, ok = repo.Commit(ctx, o.Base); !ok {
			return nil, fault.New(protocol.CodeNotFound, "no commit %s in %s", cwd.Shown(o.Base),
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

// treeOf returns a thread's work tree and its directory in it. If the worktree is gone, it returns the same
// directory in the repository's work tree, or in the one where the thread was started. The latter matters for
// submodules and bare repositories, whose work tree is not next to the git directory.
func (e Keeper) treeOf(ctx context.Context, w *heads.Workspace, of string) (repo snapshot.Repo, dir string, err error) {
	repo, err = snapshot.Find(ctx, e.Env, w.Root)
	if w.Mode != InWorktree || err == nil && (gitdir.Same(repo.Common, w.Repo) || snapshot.IsGone(w.Repo)) {
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
		if other, lost := snapshot.Find(ctx, e.Env, dir); lost == nil && gitdir.Same(other.Common, w.Repo) {
			return other, filepath.Join(other.Root, rel), nil
		}
	}
	return repo, "", cmp.Or(err, snapshot.ErrNone)
}

// startedIn returns the directory in which a thread was started, or "" if unknown.
func (e Keeper) startedIn(ctx context.Context, id string) string {
	all, _ := heads.ThreadStates(ctx, e.Heads) // unreadable entries belong to other threads
	t, err := thread.Open(ctx, e.Read, all[id].Head)
	if err != nil {
		return ""
	}
	return t.Start.Cwd
}

// Recreate creates a thread's missing worktree again if it is expected to be missing: for an ended thread
// that continues, with the files of its last step, and for a child before its first step, with its initial
// files. The missing worktree of any other active thread is an error, which the step reports.
func (e Keeper) Recreate(ctx context.Context, t Thread) error {
	w, path := t.Facts.Workspace, e.Dirs.Worktree(t.ID)
	if w == nil || w.Mode != InWorktree || !t.Ended && t.Facts.Parent == nil {
		return nil
	}
	chain, err := thread.Open(ctx, e.Read, t.Head)
	if err != nil || !t.Ended && chain.Last != nil && (t.Facts.Imported == nil || !e.RunDir(t.ID).Read().Missing) {
		return err
	}
	if !snapshot.IsGone(path) { // if it was created completely, there is no plan
		if removed, err := e.removePlanned(ctx, t.ID); err != nil || !removed {
			return err
		}
	}
	return e.treeAgain(ctx, t, chain)
}

// treeAgain creates a thread's worktree with the files of its last step, or with its initial files if it has
// no step.
func (e Keeper) treeAgain(ctx context.Context, t Thread, chain *thread.Thread) error {
	w := t.Facts.Workspace
	repo, dir, err := e.treeOf(ctx, w, t.ID)
	if err != nil {
		return nil // the step reports the missing directory
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

// A worktree contains the files that git tracks. Other things that a run needs, such as keys and libraries,
// are copied from the original work tree or created by a command of the user. They are not in any snapshot.

// Limits of the setup command.
const (
	setupTime  = 30 * time.Minute
	setupGrace = 2 * time.Second
)

// furnish prepares a new worktree for running. dir is the thread's directory in it. foreign means that its
// files come from another machine, so nothing in it runs without confirmation.
func (e Keeper) furnish(ctx context.Context, from, to snapshot.Repo, id, dir string, foreign bool) error {
	if err := include(ctx, from, to); err != nil {
		return fmt.Errorf("copy ignored files: %w", err)
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
		e.Warn(fmt.Sprintf("skipped workspace.setup: the files of this worktree come from another machine; if you "+
			"trust them: cd %s && %s", plaintext.Word(dir), plaintext.Literal(argv)))
		return nil
	}
	return e.setUp(ctx, id, dir, from.Root, argv)
}

// setUp runs the setup command of the user's config once, and saves its output.
func (e Keeper) setUp(ctx context.Context, id, dir, from string, argv []string) (err error) {
	exe, err := proc.LookPath(argv[0], dir, e.Env.Environ)
	if err != nil {
		return fault.New(protocol.CodeFailed, "workspace.setup: %s: %v", plaintext.Word(argv[0]),
			err).Because("setup-not-found")
	}
	run := e.RunDir(id)
	file := run.File(runfiles.SetupFile)
	if err = run.Make(); err == nil {
		err = safeopen.RemoveAll(file) // agents can have left a link or a pipe there
	}
	if err != nil {
		return err
	}
	log, err := os.OpenFile(file, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
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
	end()
	if err == nil && status.Code == 0 {
		return nil
	}
	if err == nil {
		err = fmt.Errorf("exit status %d", status.Code)
	}
	message := fmt.Sprintf("workspace.setup failed: %s: %v", plaintext.Literal(argv), err)
	if output := agentproc.Tail(log.Name()); output != "" {
		message += "\n" + output
	}
	return (&protocol.Error{Code: protocol.CodeFailed, Message: message, Err: err}).Because("setup-failed")
}

// Values of [Fork].Files.
const (
	FilesWorktree = "worktree" // a new worktree with the files at that step
	FilesHere     = "here"     // the other thread's directory, with the files at that step
	FilesKeep     = "keep"     // the other thread's directory, with its current files
)

// Fork describes a thread that is about to start at a node of another one.
type Fork struct {
	Thread string
	At     *thread.Thread // chain up to that node
	Facts  heads.Facts    // facts of the fork so far
	Moved  bool           // the user has chosen its directory
	// Files is [FilesWorktree], [FilesHere] or [FilesKeep]. "" means a worktree if the files are snapshotted.
	// If Before is a step, the fork starts with the files before it. Detached means that the worktree has no
	// branch.
	Files    string
	Before   protocol.Hash
	Detached bool
}

// Fork creates the workspace of a fork.
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
			e.Warn("the fork uses the files of " + cwd.Shown(facts.Workspace.Root) + " as they are, not the files of that step")
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
		e.Warn(none.Error() + "; the fork uses the files as they are")
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

// treeAt returns the files at a node of a thread: those before a step if before is set, else those after the
// node. Before the first step, these are the thread's initial files.
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

// filesHere writes the files of a fork into the other thread's directory, if that thread left it unchanged.
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
	if err != nil {
		return errors.Join(err, safeopen.RemoveAll(e.RunDir(id).Path))
	}
	return nil
}

// A new worktree also needs some files that git doesn't track: ignored files listed in a file, and links to
// directories.

// includeFile lists, in the format of .gitignore, ignored files that a new worktree needs. Other tools also
// read it.
const includeFile = ".worktreeinclude"

// Limits of what is copied into a new worktree.
const (
	maxIncluded      = 100_000
	maxIncludedBytes = 4 << 30
	maxList          = 1 << 20 // bytes
)

// linksFile in a worktree's git directory lists the links to another work tree, one path per line.
const linksFile = "uwf-links"

// include copies the ignored files that match a work tree's [includeFile] into another work tree, without
// overwriting anything.
func include(ctx context.Context, r, to snapshot.Repo) error {
	list := filepath.Join(r.Root, includeFile)
	text, err := safeopen.ReadFile(list, maxList, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) || err == nil && strings.TrimSpace(string(text)) == "" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read %s: %w", list, err)
	}
	out, err := r.Query(ctx, "", nil, "ls-files", "-o", "-i", "--exclude-from="+list, "-z")
	if err != nil || len(out) == 0 {
		return err
	}
	// Untracked files that are not ignored would appear in the other work tree's snapshots.
	ignored, err := r.Query(ctx, "", out, "check-ignore", "-z", "--stdin")
	var none *snapshot.GitError
	if err != nil && (!errors.As(err, &none) || none.Status != 1) {
		return err
	}
	paths := strings.FieldsFunc(string(ignored), func(r rune) bool { return r == 0 })
	if len(paths) > maxIncluded {
		return fmt.Errorf("%s matches %d files, but at most %d are copied; to link a directory instead, use "+
			"workspace.link", includeFile, len(paths), maxIncluded)
	}
	from, err := os.OpenRoot(r.Root)
	if err != nil {
		return err
	}
	defer func() { _ = from.Close() }()
	into, err := os.OpenRoot(to.Root)
	if err != nil {
		return err
	}
	defer func() { _ = into.Close() }()
	room := int64(maxIncludedBytes)
	for _, name := range paths {
		if strings.HasSuffix(name, "/") || ctx.Err() != nil {
			continue // a nested repository
		}
		if err := takeAlong(from, into, filepath.FromSlash(name), &room); err != nil {
			return fmt.Errorf("copy %s: %w", name, err)
		}
	}
	return ctx.Err()
}

// takeAlong copies a file or a symbolic link unless the target exists.
func takeAlong(from, to *os.Root, name string, room *int64) error {
	info, err := from.Lstat(name)
	if err != nil {
		return nil //nolint:nilerr // it was removed in the meantime
	}
	if _, err := to.Lstat(name); err == nil {
		return nil
	}
	if dir := filepath.Dir(name); dir != "." {
		if err := to.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := from.Readlink(name)
		if err != nil {
			return err
		}
		return to.Symlink(target, name)
	}
	if !info.Mode().IsRegular() {
		return nil
	}
	if *room -= info.Size(); *room < 0 {
		return fmt.Errorf("the files have more than %d GB", maxIncludedBytes>>30)
	}
	in, err := safeopen.OpenIn(from, name)
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }()
	out, err := to.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, info.Mode().Perm())
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// link creates symbolic links to directories of another work tree. Snapshots omit these links. It skips
// missing directories and existing targets.
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
		// List a link before it is created, so that a snapshot in between omits it.
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

// links returns the paths that [link] has created.
func links(r snapshot.Repo) []string {
	text, err := safeopen.ReadFile(filepath.Join(r.Dir, linksFile), maxList, safeopen.NoFollow)
	if err != nil {
		return nil
	}
	return strings.FieldsFunc(string(text), func(r rune) bool { return r == '\n' })
}
