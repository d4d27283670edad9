// Package worktree manages the files of threads: their work trees, including worktrees of their own, and a
// snapshot with each step. It also implements what users do with these files between steps: apply a result to
// a branch, redact a path everywhere, list worktrees, and remove them.
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
	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Modes of a workspace.
const (
	ModeNone    = "none"              // no snapshots
	ModeInPlace = "in-place"          // the user's directory, with a snapshot per step
	InPlace     = "here"              // ModeInPlace, as stored in facts and bundles
	InWorktree  = protocol.InWorktree // the thread's own git worktree, with a snapshot per step
	// ModeDefault is the mode set in the config, else in-place if the directory is in a git work tree.
	ModeDefault = "default"
)

// ModeName returns a stored mode as users write it.
func ModeName(mode string) string {
	if mode == InPlace {
		return ModeInPlace
	}
	return mode
}

// treePatience is the time to wait for another thread's step in the same work tree.
const treePatience = 100 * time.Millisecond

// Checkout is the locked work tree of an attempt, whose files are snapshotted with its step.
type Checkout struct {
	Repo snapshot.Repo
	dir  string // the agent's directory
	Spec snapshot.Spec
	// Before is the snapshot before the step.
	Before protocol.Tree
	// Left lists the paths that the snapshot omits.
	Left []string

	by      Keeper
	lock    *durable.Held // lock of the work tree
	after   protocol.Tree // snapshot of the step made here; "" if none was made
	madeAt  time.Time
	reports []string // paths that an earlier step omitted
}

// Locked reports whether the work tree is locked.
func (k *Checkout) Locked() bool { return k != nil && k.lock != nil }

// Release unlocks the work tree.
func (k *Checkout) Release() {
	if k.Locked() {
		_ = k.lock.RemoveAndUnlock()
		k.lock = nil
	}
}

// Open finds and locks the work tree of a thread, and takes a snapshot of it.
func (e Keeper) Open(ctx context.Context, id, dir string, w *heads.Workspace) (*Checkout, error) {
	return e.open(ctx, id, dir, w, false)
}

// open does the same as [Keeper.Open]; held means that the caller has locked the work tree.
func (e Keeper) open(ctx context.Context, id, dir string, w *heads.Workspace, held bool) (*Checkout, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	switch {
	case err != nil && w.Mode == InWorktree && snapshot.IsGone(w.Repo) && !snapshot.IsGone(w.Root):
		return nil, fault.New(protocol.CodeFailed, "the repository of worktree %s is no longer at %s",
			cwd.Shown(w.Root), cwd.Shown(w.Repo)).Because("repository-moved", "thread", id)
	case err != nil:
		return nil, err
	}
	if w.Mode == InWorktree && !gitdir.Same(repo.Common, w.Repo) {
		return nil, fmt.Errorf("%s is no longer a worktree of %s", cwd.Shown(w.Root), cwd.Shown(w.Repo))
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

// LockTree locks a work tree, so that only one thread's step at a time works in it.
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
	if err := e.unclaimed(ctx, root, id, true); err != nil {
		return nil, errors.Join(err, lock.RemoveAndUnlock())
	}
	return lock, nil
}

// ofTree returns the common prefix of the paths of our files about a work tree.
func (e Keeper) ofTree(root string) string {
	sum := sha256.Sum256([]byte(root))
	return filepath.Join(e.Dirs.Locks(), "tree-"+hex.EncodeToString(sum[:10]))
}

// begin takes the snapshot at the start of a step.
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
	taken, err := snapshot.Begin(ctx, e.Env, k.Repo, &k.Spec)
	k.Left = taken.Left
	if err != nil || !gitdir.Same(k.Repo.Root, e.Dirs.Worktree(id)) {
		return err
	}
	var found snapshot.Rescued
	k.Spec.Tree, found, err = snapshot.FinishWorktree(ctx, e.Env, k.Spec, dir.File(runfiles.RestoreFile))
	e.warnOf(k, found)
	return err
}

// Abbreviate returns the first few paths as text.
func Abbreviate(paths []string) string {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = cwd.Shown(path)
	}
	return snapshot.Abbreviate(shown)
}

// SpecOf returns the snapshot settings for a thread's files.
func (e Keeper) SpecOf(repo snapshot.Repo, thread string) (snapshot.Spec, error) {
	s := snapshot.Spec{
		Root: repo.Root, Git: repo.Store(e.Dirs.Git()), Index: e.RunDir(thread).File(runfiles.IndexFile),
		Ref: "refs/uwf/" + thread, Partial: repo.Partial, Keys: repo.Keys,
	}
	var err error
	if s.Redacted, err = snapshot.RedactedPaths(s.Git); err != nil {
		return s, fmt.Errorf("read redacted files: %w", err)
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
				return s, fault.New(protocol.CodeFailed, "%s is the uwf home", cwd.Shown(repo.Root))
			}
			s.Skip = append(s.Skip, filepath.ToSlash(rel))
		}
	}
	return s, nil
}

// deniedPaths returns the paths in a work tree that agents in dir are not allowed to read.
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

// Options describe how the files of a new thread are kept. The zero value means without snapshots.
type Options struct {
	Mode string
	// Base is the initial commit of a worktree; "" means HEAD. Dirty includes uncommitted changes.
	Base  string
	Dirty bool
}

// New creates the workspace of a new thread.
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
	return nil, fault.New(protocol.CodeUsage, "invalid workspace %q: want in-place, worktree or none", mode)
}

// inPlace returns the workspace of a thread that works in the user's own directory.
func (e Keeper) inPlace(ctx context.Context, dir string) (*heads.Workspace, error) {
	repo, err := snapshot.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTreeError(dir, err)
	}
	return &heads.Workspace{Mode: InPlace, Root: dir, Repo: repo.Common, Base: repo.Head}, nil
}

// noWorkTreeError returns the error for a directory whose files cannot be snapshotted.
func noWorkTreeError(dir string, err error) error {
	text := cwd.Shown(dir) + " is not in a git work tree, so its files cannot be kept"
	if !errors.Is(err, snapshot.ErrNone) {
		text = "cannot keep the files of " + cwd.Shown(dir) + ": " + err.Error()
	}
	return (&protocol.Error{Code: protocol.CodeFailed, Message: text, Err: err}).Because("no-work-tree")
}

// defaultMode returns the default mode for a new thread: the one that the config sets for the workflow, else
// in-place if dir is in a git work tree that is not the user's whole home directory.
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

// NewRepository creates a repository in an empty directory, for an imported thread without a local clone. Its
// only commit contains the files of first, and its work tree those of tree. The thread works in the
// subdirectory below, or at the root. If it fails, the directory is empty again. An interrupted creation
// leaves a mark, and the next call starts over.
func (e Keeper) NewRepository(ctx context.Context, id, dir, below string, first,
	tree protocol.Tree) (w *heads.Workspace, err error) {
	held, err := begin(dir)
	if err != nil {
		return nil, fmt.Errorf("create a repository in %s: %w", cwd.Shown(dir), err)
	}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("create a repository in %s: %w", cwd.Shown(dir), err), empty(dir, ""))
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
	if err := e.fetch(ctx, spec.Git, first, tree); err != nil {
		return nil, err
	}
	if err := repo.FirstCommit(ctx, spec, first, "uwf thread "+id); err != nil {
		return nil, err
	}
	if err := e.RunDir(id).Make(); err != nil {
		return nil, err
	}
	if err := snapshot.Reset(ctx, e.Env, spec, tree); err != nil {
		return nil, err
	}
	root, err := placeIn(dir, below)
	if err != nil {
		return nil, err
	}
	return e.inPlace(ctx, root)
}

// placeIn returns a subdirectory, and creates it if it is missing. Symbolic links cannot lead out of dir.
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

// unfinished returns the path of the mark in a repository that is being created, which is also its lock.
func unfinished(dir string) string { return filepath.Join(dir, ".git", "uwf-unfinished") }

// begin marks a directory that is empty or contains only the remains of an interrupted creation.
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

// empty removes everything in a directory except one file.
func empty(dir, but string) error {
	entries, err := os.ReadDir(dir)
	for _, entry := range entries {
		if entry.Name() != but {
			err = errors.Join(err, os.RemoveAll(filepath.Join(dir, entry.Name())))
		}
	}
	return err
}

// Keeper manages the files of threads: their work trees, a snapshot with each step, and the snapshot
// repositories. [Engine.Files] returns one.
type Keeper struct {
	Env   env.Env
	Dirs  home.Dirs
	FS    durable.FS
	Heads heads.Heads

	DenyRead func(c protocol.Config, dir string) []string // paths that agents in dir are not allowed to read; nil means none
	Config   func(ctx context.Context) (protocol.Config, error)
	Read     cas.Reader
	Warn     func(string)
	RunDir   func(thread string) rundir.Dir
	Grace    time.Duration
	// Sandbox runs commands outside of steps in a sandbox; nil means without one.
	Sandbox Sandbox
	// Lock locks a thread, so that no other process steps or moves it until the lock is released.
	Lock func(ctx context.Context, thread string) (Locked, error)
	// Show returns the state of an active thread.
	Show func(ctx context.Context, thread string) (protocol.StepOutput, error)
}

// Sandbox returns a command that runs cmd in a sandbox. Call end when it has ended.
type Sandbox func(ctx context.Context, cmd proc.Command) (confined proc.Command, end func(), err error)

// start starts a command in the sandbox.
func (e Keeper) start(ctx context.Context, cmd proc.Command) (child *proc.Child, end func(), err error) {
	end = func() {}
	if e.Sandbox != nil {
		if cmd, end, err = e.Sandbox(ctx, cmd); err != nil {
			return nil, nil, err
		}
	}
	if child, err = proc.Start(cmd); err != nil {
		end()
		return nil, nil, err
	}
	return child, end, nil
}

// Thread is a locked thread whose files are about to be used or changed.
type Thread struct {
	ID    string
	Head  protocol.Hash
	Ended bool
	Facts heads.Facts
}
