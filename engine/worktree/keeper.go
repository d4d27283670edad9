// Package worktree manages the files of threads: the work trees that they work in, worktrees of
// their own, a snapshot with each step, and what people do with these files between steps: apply a
// result to a branch, redact a path everywhere, list worktrees, and remove them.
package worktree

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// The modes of a workspace: how the files of a thread are kept.
const (
	ModeNone    = "none"              // they are not
	ModeInPlace = "in-place"          // where a person has them, a snapshot with each step
	InPlace     = "here"              // the same, as facts and bundles have it
	InWorktree  = protocol.InWorktree // likewise, in a git worktree of the thread's own
	// ModeDefault is the one that the config wants, else InPlace where git has a work tree.
	ModeDefault = "default"
)

// ModeName returns a mode of facts as people write it.
func ModeName(mode string) string {
	if mode == InPlace {
		return ModeInPlace
	}
	return mode
}

// treePatience is how long to wait for another thread's step to end in a work tree.
const treePatience = 100 * time.Millisecond

// Checkout is the work tree of an attempt whose files are kept with its step.
type Checkout struct {
	Repo snapshot.Repo
	dir  string // where the agent works
	Spec snapshot.Spec
	// Before is what the files were before the step.
	Before protocol.Tree
	// Left are the paths that the snapshot leaves out.
	Left []string

	by      Keeper
	lock    *durable.Held // of the work tree
	after   protocol.Tree // kept with the step that was made here; "": none was
	madeAt  time.Time
	reports []string // paths that an earlier step has left out
}

// Held reports whether the work tree is locked.
func (k *Checkout) Held() bool { return k != nil && k.lock != nil }

// Release gives the work tree back.
func (k *Checkout) Release() {
	if k.Held() {
		_ = k.lock.RemoveAndUnlock()
		k.lock = nil
	}
}

// Open finds and locks the work tree of a thread, and makes a snapshot of it as it
// is.
func (e Keeper) Open(ctx context.Context, id, dir string, w *heads.Workspace) (*Checkout, error) {
	return e.open(ctx, id, dir, w, false)
}

// open is [Keeper.Open]; held: the caller has locked the work tree.
func (e Keeper) open(ctx context.Context, id, dir string, w *heads.Workspace, held bool) (*Checkout, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	switch {
	case err != nil && w.Mode == InWorktree && isGone(w.Repo) && !isGone(w.Root):
		return nil, fault.New(protocol.CodeFailed, "the repository of the worktree %s is not at %s any more",
			cwd.Shown(w.Root), cwd.Shown(w.Repo)).Because("repository-moved", "thread", id)
	case err != nil:
		return nil, err
	}
	if w.Mode == InWorktree && !sameFile(repo.Common, w.Repo) {
		return nil, fmt.Errorf("%s is not a worktree of %s any more", cwd.Shown(w.Root), cwd.Shown(w.Repo))
	}
	k := &Checkout{Repo: repo, dir: dir, by: e}
	if !held {
		if k.lock, err = e.LockTree(ctx, id, repo.Root); err != nil {
			return nil, err
		}
	}
	if err := e.begin(ctx, id, k); err != nil {
		k.Release()
		return nil, err
	}
	return k, nil
}

// LockTree lets one thread's step at a time work in a work tree.
func (e Keeper) LockTree(ctx context.Context, id, root string) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	lock, err := durable.Lock(ctx, e.ofTree(root)+".lock")
	if errors.Is(err, durable.ErrLocked) {
		return nil, fault.New(protocol.CodeLocked, "the step of another thread is running in %s",
			cwd.Shown(root)).Because("work-tree-locked")
	}
	if err != nil {
		return nil, err
	}
	if err := e.unclaimed(root, id, true); err != nil {
		return nil, errors.Join(err, lock.RemoveAndUnlock())
	}
	return lock, nil
}

// ofTree is the path of our files about a work tree, without what they end with.
func (e Keeper) ofTree(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(e.Dirs.Locks(), "tree-"+hex.EncodeToString(sum[:10]))
}

// begin makes the snapshot that the step begins with.
func (e Keeper) begin(ctx context.Context, id string, k *Checkout) error {
	c, err := e.Config(ctx)
	if err != nil {
		return err
	}
	dir := e.RunDir(id)
	if err := dir.Make(); err != nil {
		return err
	}
	if k.Spec, err = e.SpecOf(k.Repo, id); err != nil {
		return err
	}
	k.Spec.DenyRead = e.deniedPaths(c, k.Repo.Root, k.dir)
	if c.Workspace != nil && c.Workspace.MaxFileMB > 0 {
		k.Spec.MaxFile = int64(c.Workspace.MaxFileMB) << 20
	}
	taken, rescued, err := snapshot.Begin(ctx, e.Env, k.Repo, &k.Spec, dir.File(runfiles.RestoreFile))
	k.Left = taken.Left
	if rescued != "" {
		e.Warn("a restore of the files that was cut off is finished; what was found is kept as " + rescued + " " +
			"in " + k.Spec.Git)
	}
	return err
}

// Abbreviate names a few paths.
func Abbreviate(paths []string) string {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = cwd.Shown(path)
	}
	return snapshot.Abbreviate(shown)
}

// SpecOf says where the files of a thread are kept.
func (e Keeper) SpecOf(repo snapshot.Repo, thread string) (snapshot.Spec, error) {
	s := snapshot.Spec{
		Root: repo.Root, Git: repo.Store(e.Dirs.Git()), Index: e.RunDir(thread).File(runfiles.IndexFile),
		Ref: "refs/uwf/" + thread, Partial: repo.Partial, Keys: repo.Keys,
	}
	var err error
	if s.Redacted, err = snapshot.RedactedPaths(s.Git); err != nil {
		return s, fmt.Errorf("read which files were taken out: %w", err)
	}
	for _, stream := range []io.Writer{e.Env.Stdout, e.Env.Stderr} {
		f, isFile := stream.(*os.File)
		if !isFile {
			continue
		}
		if info, err := f.Stat(); err == nil && info.Mode().IsRegular() && safeopen.Identity(info) != "" {
			s.Outputs = append(s.Outputs, safeopen.Identity(info))
		}
	}
	s.Skip = links(repo)
	for _, dir := range []string{e.Dirs.Home, e.Dirs.Store} {
		real, err := cwd.Real(dir)
		if err != nil {
			continue
		}
		if rel, ok := cwd.Below(repo.Root, real); ok {
			if rel == "." {
				return s, fault.New(protocol.CodeFailed, "%s is the home of uwf", cwd.Shown(repo.Root))
			}
			s.Skip = append(s.Skip, filepath.ToSlash(rel))
		}
	}
	return s, nil
}

// deniedPaths returns the paths in a work tree that agents in a directory of it may not read.
func (e Keeper) deniedPaths(c protocol.Config, root, dir string) (paths []string) {
	if e.DenyRead == nil {
		return nil
	}
	for _, path := range e.DenyRead(c, dir) {
		if rel, ok := cwd.Below(root, path); ok && rel != "." {
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// sameFile reports whether two paths lead to one directory.
func sameFile(a, b string) bool {
	x, err := cwd.Real(a)
	if err != nil {
		return false
	}
	y, err := cwd.Real(b)
	return err == nil && x == y
}

// Options say how the files of a new thread are kept. The zero value: they are not.
type Options struct {
	Mode string
	// Base is the commit that a worktree begins with; "": HEAD's. Dirty takes along what
	// is not committed.
	Base  string
	Dirty bool
}

// New is what is known of a new thread of a workflow that works in a directory.
func (e Keeper) New(ctx context.Context, o Options, id, workflow, dir string) (*heads.Workspace, error) {
	mode := o.Mode
	if mode == ModeDefault {
		var err error
		if mode, err = e.defaultMode(ctx, workflow, dir); err != nil {
			return nil, err
		}
	}
	switch mode {
	case "", ModeNone:
		return nil, nil
	case ModeInPlace, InPlace:
		return e.inPlace(ctx, dir)
	case InWorktree:
		return e.startTree(ctx, id, workflow, dir, o)
	}
	return nil, fault.New(protocol.CodeUsage, "there is no workspace %q: in-place, worktree or none", mode)
}

// inPlace is the workspace of a thread that works in a person's own directory.
func (e Keeper) inPlace(ctx context.Context, dir string) (*heads.Workspace, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTreeError(dir, err)
	}
	return &heads.Workspace{Mode: InPlace, Root: dir, Repo: repo.Common, Base: repo.Head}, nil
}

// WarnShared warns if a step of another thread works in the directory of a new one: each would
// see the other's changes.
func (e Keeper) WarnShared(ctx context.Context, w *heads.Workspace) {
	if w == nil || w.Mode != InPlace {
		return
	}
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil {
		return // whoever needs them says what is wrong
	}
	for h, err := range e.Heads.Heads(ctx) {
		if err != nil {
			return
		}
		other := facts[h.Thread]
		run, o := e.RunDir(h.Thread), other.Workspace
		if o != nil && o.Mode == InPlace && o.Root == w.Root && other.Parent == nil && run.Alive(run.Read()) {
			e.Warn("thread " + h.Thread + " works in this directory, too: --workspace worktree gives a thread files of its own")
			return
		}
	}
}

// noWorkTreeError says why the files of a directory cannot be kept.
func noWorkTreeError(dir string, err error) error {
	text := cwd.Shown(dir) + " is in no git work tree: its files cannot be kept"
	if !errors.Is(err, snapshot.ErrNone) {
		text = "the files of " + cwd.Shown(dir) + " cannot be kept: " + err.Error()
	}
	return (&protocol.Error{Code: protocol.CodeFailed, Message: text, Err: err}).Because("no-work-tree")
}

// defaultMode is how the files of a new thread in a directory are kept if nobody says: as the
// config says for the workflow, else in place, if git has a work tree there that is not the
// user's whole home directory.
func (e Keeper) defaultMode(ctx context.Context, workflow, dir string) (string, error) {
	c, err := e.Config(ctx)
	if err != nil {
		return "", err
	}
	wanted := ""
	if c.Workspace != nil {
		wanted = cmp.Or(c.Workspace.PerWorkflow[workflow], c.Workspace.Default)
	}
	if wanted == ModeNone {
		return ModeNone, nil
	}
	repo, err := snapshot.Find(ctx, e.Env, dir)
	switch {
	case errors.Is(err, snapshot.ErrNone):
		return ModeNone, nil
	case err != nil:
		e.Warn("the files of this thread are not kept: " + err.Error())
		return ModeNone, nil
	}
	if real, err := cwd.Real(home.User(e.Env)); err == nil && wanted == "" {
		if _, ok := cwd.Below(repo.Root, real); ok {
			return ModeNone, nil
		}
	}
	return cmp.Or(wanted, ModeInPlace), nil
}

// NewRepository makes a repository in an empty directory, for a thread that comes from
// elsewhere and of whose own no clone is here. Its only commit has the files of first, and
// the work tree those of tree; the thread works at a place below its root, or there. If that
// fails the directory is empty again. One that was killed at it left a mark, and is begun
// again.
func (e Keeper) NewRepository(ctx context.Context, id, dir, below string, first,
	tree protocol.Tree) (w *heads.Workspace, err error) {
	held, err := begin(dir)
	if err != nil {
		return nil, fmt.Errorf("make a repository in %s: %w", cwd.Shown(dir), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("make a repository in %s: %w", cwd.Shown(dir), err), empty(dir, ""))
		} else {
			err = os.Remove(unfinished(dir))
		}
		err = errors.Join(err, held.Unlock())
	}()
	repo, err := snapshot.NewRepo(ctx, e.Env, dir, tree.Function())
	if err != nil {
		return nil, err
	}
	spec, err := e.SpecOf(repo, id)
	if err != nil {
		return nil, err
	}
	if err := repo.Seed(ctx, spec.Git, false); err != nil {
		return nil, err
	}
	for _, state := range []protocol.Tree{first, tree} {
		if err := e.fetch(ctx, spec.Git, state); err != nil {
			return nil, err
		}
	}
	if err := repo.FirstCommit(ctx, spec, first, "uwf thread "+id); err != nil {
		return nil, err
	}
	if err := e.RunDir(id).Make(); err != nil {
		return nil, err
	}
	if err := snapshot.Fill(ctx, e.Env, spec, tree); err != nil {
		return nil, err
	}
	root, err := placeIn(dir, below)
	if err != nil {
		return nil, err
	}
	return e.inPlace(ctx, root)
}

// placeIn is a place below a directory, which is made if it is not there. No link leads out.
func placeIn(dir, below string) (string, error) {
	if below == "" {
		return dir, nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(below, 0o777); err != nil {
		return "", err
	}
	return cwd.Real(filepath.Join(dir, below))
}

// unfinished is the mark in a repository that is being made; its maker has locked it.
func unfinished(dir string) string { return filepath.Join(dir, ".git", "uwf-unfinished") }

// begin marks a directory that is empty, or that has only what one who was killed has left.
func begin(dir string) (*durable.Held, error) {
	if err := os.Mkdir(filepath.Join(dir, ".git"), 0o777); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, err
	}
	held, err := durable.TryLock(unfinished(dir))
	if err != nil {
		return nil, err
	}
	if err := empty(filepath.Join(dir, ".git"), filepath.Base(unfinished(dir))); err != nil {
		return nil, errors.Join(err, held.Unlock())
	}
	return held, nil
}

// empty removes what is in a directory, but for one file.
func empty(dir, but string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != but {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// Keeper keeps the files of threads: the work trees that they work in, a snapshot with each
// step, and the git directories of ours that have them. [Engine.Files] makes one.
type Keeper struct {
	Env   env.Env
	Dirs  home.Dirs
	FS    durable.FS
	Heads heads.Heads

	DenyRead func(c protocol.Config, dir string) []string // what agents there may not read; nil: nothing
	Config   func(ctx context.Context) (protocol.Config, error)
	Read     cas.Reader
	Warn     func(string)
	RunDir   func(thread string) rundir.Dir
	Grace    time.Duration
	// Sandbox confines the commands that are of no step; nil: they run as they are.
	Sandbox Sandbox
	// Lock takes a thread's lock: nobody steps or moves it until the lock is released.
	Lock func(ctx context.Context, thread string) (Locked, error)
	// Show reports where an active thread stands.
	Show func(ctx context.Context, thread string) (protocol.StepOutput, error)
}

// Sandbox returns a command that runs another one confined. end is called when it has ended.
type Sandbox func(ctx context.Context, cmd proc.Command) (confined proc.Command, end func() error, err error)

// start starts a command in the sandbox.
func (e Keeper) start(ctx context.Context, cmd proc.Command) (child *proc.Child, end func() error, err error) {
	end = func() error { return nil }
	if e.Sandbox != nil {
		if cmd, end, err = e.Sandbox(ctx, cmd); err != nil {
			return nil, nil, err
		}
	}
	if child, err = proc.Start(cmd); err != nil {
		return nil, nil, errors.Join(err, end())
	}
	return child, end, nil
}

// Thread is one whose files are at stake, under its lock.
type Thread struct {
	ID    string
	Head  protocol.Hash
	Ended bool
	Facts heads.Facts
}
