package engine

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/runfiles"
)

// The modes of a workspace: how the files of a thread are kept.
const (
	AsItIs     = "none"     // they are not
	InPlace    = "here"     // where a person has them, a snapshot with each step
	InWorktree = "worktree" // likewise, in a git worktree of the thread's own
	// ByDefault is the one that the config wants, else InPlace where git has a work tree.
	ByDefault = "default"
)

// treePatience is how long another thread's step may still be ending in a work tree.
const treePatience = 100 * time.Millisecond

// keeping is the work tree of an attempt whose files are kept with its step.
type keeping struct {
	repo files.Repo
	dir  string // where the agent works
	spec files.Spec
	lock *durable.Held // of the work tree
}

func (k *keeping) release() {
	if k != nil {
		_ = k.lock.RemoveAndUnlock()
	}
}

// snapshot is what the agent is told of where the files are kept; "": nowhere.
func (a *attempt) snapshot() string {
	if a.kept == nil {
		return ""
	}
	return a.kept.spec.String()
}

// keepFiles finds out what the files are before the step, and puts them back where the
// step is made once more. What is in the way of the agent is an error, while nobody is
// paid; that they cannot be kept is told, and costs the step no more than its files.
func (a *attempt) keepFiles(ctx context.Context) error {
	w := a.locked.workspace
	if w == nil || w.Mode == AsItIs {
		return nil
	}
	k, err := a.openFiles(ctx, a.locked.id, a.pos.dir(), w)
	if err != nil {
		return a.notKept(w, err)
	}
	if err := a.putBack(ctx, k, a.locked.id, a.task.files); err != nil {
		k.release()
		return err
	}
	if last := a.pos.thread.Last; last == nil || last.Files == nil || last.Files.Tree != k.spec.Tree {
		k.spec.Before = k.spec.Tree
	}
	a.kept = k
	return nil
}

// notKept tells that the files are not kept; of a worktree of the thread's own it is
// an error: there is nothing else in it.
func (a *attempt) notKept(w *heads.Workspace, err error) error {
	var locked *protocol.Error
	var blocked *files.InTheWayError
	switch {
	case errors.As(err, &locked), ctxEnded(err):
		return err
	case errors.As(err, &blocked):
		return fault.Hinted(fault.New(protocol.CodeFailed, "a restore of the files was cut off, and cannot be finished: %v", blocked), "move them away, and then: "+a.again())
	case w.Mode == InWorktree:
		return fault.Hinted(fault.New(protocol.CodeFailed, "the worktree of thread %s cannot be used: %v", a.locked.id, err), "uwf thread fork "+string(a.locked.head)+" makes another one")
	}
	a.warn("the files are not kept with this step: " + err.Error())
	return nil
}

func ctxEnded(err error) bool {
	return errors.Is(err, context.Canceled)
}

// openFiles finds and locks the work tree of a thread, and makes a snapshot of it as it
// is.
func (e *Engine) openFiles(ctx context.Context, id, dir string, w *heads.Workspace) (*keeping, error) {
	repo, err := files.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, err
	}
	if w.Mode == InWorktree && !sameFile(repo.Common, w.Repo) {
		return nil, fmt.Errorf("%s is not a worktree of %s any more", place.Shown(w.Root), place.Shown(w.Repo))
	}
	lock, err := e.lockTree(ctx, id, repo.Root)
	if err != nil {
		return nil, err
	}
	k := &keeping{repo: repo, dir: dir, lock: lock}
	if err := e.begin(ctx, id, k); err != nil {
		k.release()
		return nil, err
	}
	return k, nil
}

// lockTree lets one thread's step at a time work in a work tree.
func (e *Engine) lockTree(ctx context.Context, id, root string) (*durable.Held, error) {
	sum := sha256.Sum256([]byte(root))
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	lock, err := durable.Lock(ctx, filepath.Join(e.Dirs.Locks(), "tree-"+hex.EncodeToString(sum[:10])+".lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil, fault.Hinted(fault.New(protocol.CodeLocked, "the step of another thread is running in %s", place.Shown(root)),
			"uwf thread resume "+id+" once it has ended", "uwf thread running")
	}
	return lock, err
}

// begin makes the snapshot that the step begins with.
func (e *Engine) begin(ctx context.Context, id string, k *keeping) error {
	c, err := e.Config(ctx)
	if err != nil {
		return err
	}
	dir := e.runDir(id)
	if err := dir.Make(); err != nil {
		return err
	}
	if k.spec, err = e.specOf(k.repo, id); err != nil {
		return err
	}
	k.spec.Hide = e.unread(c, k.repo.Root, k.dir)
	if c.Workspace != nil && c.Workspace.MaxFile > 0 {
		k.spec.MaxFile = int64(c.Workspace.MaxFile) << 20
	}
	_, rescued, err := files.Begin(ctx, e.Env, k.repo, &k.spec, dir.File(runfiles.RestoreFile))
	if rescued != "" {
		e.warn("a restore of the files that was cut off is finished; what was found is kept as " + rescued + " in " + k.spec.Git)
	}
	return err
}

// putBack makes the files those before a step, if they still are those after it; nil:
// they stay as they are.
func (e *Engine) putBack(ctx context.Context, k *keeping, id string, step *StepFiles) error {
	if step == nil {
		return nil
	}
	return e.restore(ctx, k, id, step.After, step.Before)
}

// restore makes the files those of a tree, if they are those of another now.
func (e *Engine) restore(ctx context.Context, k *keeping, id string, have, to protocol.Tree) error {
	if err := e.bring(ctx, k.spec.Git, to); err != nil {
		return fmt.Errorf("put the files back: %w", err)
	}
	_, err := files.Restore(ctx, e.Env, k.spec, have, to, e.runDir(id).File(runfiles.RestoreFile))
	var unsaved *files.UnsavedError
	var blocked *files.InTheWayError
	switch {
	case errors.As(err, &unsaved):
		return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: "the files are not put back: since the last step these were changed: " + some(unsaved.Paths), Err: err},
			"git stash, or git commit, keeps the changes", "--keep-files leaves all files as they are")
	case errors.As(err, &blocked):
		return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: "the files are not put back: " + place.Shown(blocked.Error()), Err: err},
			"move them away", "--keep-files leaves all files as they are")
	case err != nil:
		return fmt.Errorf("put the files back: %w", err)
	}
	k.spec.Tree = to
	return nil
}

// some names a few paths.
func some(paths []string) string {
	const most = 5
	named := make([]string, 0, most)
	for _, path := range paths[:min(len(paths), most)] {
		named = append(named, place.Shown(path))
	}
	if n := len(paths) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(named, ", "), n)
	}
	return strings.Join(named, ", ")
}

// specOf says where the files of a thread are kept.
func (e *Engine) specOf(repo files.Repo, thread string) (files.Spec, error) {
	s := files.Spec{
		Root: repo.Root, Git: repo.Store(e.Dirs.Git()), Index: e.runDir(thread).File(runfiles.IndexFile),
		Ref: "refs/uwf/" + thread, Partial: repo.Partial, Keys: repo.Keys,
	}
	s.Skip = repo.Links()
	for _, dir := range []string{e.Dirs.Home, e.Dirs.Store} {
		real, err := place.Real(dir)
		if err != nil {
			continue
		}
		if rel, ok := place.Below(repo.Root, real); ok {
			if rel == "." {
				return s, fault.New(protocol.CodeFailed, "%s is the home of uwf", place.Shown(repo.Root))
			}
			s.Skip = append(s.Skip, filepath.ToSlash(rel))
		}
	}
	return s, nil
}

// unread are the paths in a work tree that agents in a directory of it may not read.
func (e *Engine) unread(c protocol.Config, root, dir string) (paths []string) {
	if e.Hidden == nil {
		return nil
	}
	for _, path := range e.Hidden(c, dir) {
		if rel, ok := place.Below(root, path); ok && rel != "." {
			paths = append(paths, filepath.ToSlash(rel))
		}
	}
	return paths
}

// checkFiles tells if the state of the files that a step names is not there. The step
// counts all the same.
func (a *attempt) checkFiles(ctx context.Context, s protocol.Step) {
	switch {
	case a.kept == nil:
		return
	case s.Files == nil && s.Root == "": // who could not keep them has said so
		a.warn("agent " + place.Shown(s.Agent) + " does not keep the files: its steps have none")
		return
	case s.Files == nil:
		return
	}
	if s.Root != a.kept.spec.Root || !files.Has(ctx, a.Env, a.kept.spec.Git, s.Files.Tree) {
		a.warn(fmt.Sprintf("the agent says that the files are %s, which is not kept in %s", s.Files.Tree, a.kept.spec.Git))
	}
}

// sameFile reports whether two paths lead to one directory.
func sameFile(a, b string) bool {
	x, err := place.Real(a)
	if err != nil {
		return false
	}
	y, err := place.Real(b)
	return err == nil && x == y
}

// WorkspaceOptions say how the files of a new thread are kept. The zero value: not.
type WorkspaceOptions struct {
	Mode string
	// Base is the commit that a worktree begins with; "": HEAD's. Dirty takes along what
	// is not committed.
	Base  string
	Dirty bool
}

// workspaceOf is what is known of a new thread of a workflow that works in a directory.
func (e *Engine) workspaceOf(ctx context.Context, o WorkspaceOptions, id, workflow, dir string) (*heads.Workspace, error) {
	mode := o.Mode
	if mode == ByDefault {
		var err error
		if mode, err = e.defaultMode(ctx, workflow, dir); err != nil {
			return nil, err
		}
	}
	switch mode {
	case "", AsItIs:
		return nil, nil
	case InPlace:
		return e.inPlace(ctx, dir)
	case InWorktree:
		return e.startTree(ctx, id, workflow, dir, o)
	}
	return nil, fault.New(protocol.CodeUsage, "there is no workspace %q: here, worktree or none", mode)
}

// inPlace is the workspace of a thread in a directory of a person's.
func (e *Engine) inPlace(ctx context.Context, dir string) (*heads.Workspace, error) {
	repo, err := files.Find(ctx, e.Env, dir)
	if err != nil {
		return nil, noWorkTree(dir, err)
	}
	return &heads.Workspace{Mode: InPlace, Root: dir, Repo: repo.Common, Base: repo.Head}, nil
}

// tellNeighbour says that another active thread works in the directory of a new one:
// each would find the other's changes.
func (e *Engine) tellNeighbour(ctx context.Context, w *heads.Workspace) {
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
		if o := other.Workspace; o != nil && o.Mode == InPlace && o.Root == w.Root && other.Parent == nil {
			e.warn("thread " + h.Thread + " is active in this directory, too: --workspace worktree gives a thread files of its own")
			return
		}
	}
}

// noWorkTree says why the files of a directory cannot be kept.
func noWorkTree(dir string, err error) error {
	text := place.Shown(dir) + " is in no git work tree: its files cannot be kept"
	if !errors.Is(err, files.ErrNone) {
		text = "the files of " + place.Shown(dir) + " cannot be kept: " + err.Error()
	}
	return fault.Hinted(&protocol.Error{Code: protocol.CodeFailed, Message: text, Err: err}, "--workspace none works there as it is")
}

// defaultMode is how the files of a new thread in a directory are kept if nobody says
// it: as the config wants it for the workflow, else in place, where git has a work tree
// that is not all of the user's own directory.
func (e *Engine) defaultMode(ctx context.Context, workflow, dir string) (string, error) {
	c, err := e.Config(ctx)
	if err != nil {
		return "", err
	}
	wanted := ""
	if c.Workspace != nil {
		wanted = cmp.Or(c.Workspace.PerWorkflow[workflow], c.Workspace.Default)
	}
	if wanted == AsItIs {
		return AsItIs, nil
	}
	repo, err := files.Find(ctx, e.Env, dir)
	switch {
	case errors.Is(err, files.ErrNone):
		return AsItIs, nil
	case err != nil:
		e.warn("the files of this thread are not kept: " + err.Error())
		return AsItIs, nil
	}
	if real, err := place.Real(home.User(e.Env)); err == nil && wanted == "" {
		if _, ok := place.Below(repo.Root, real); ok {
			return AsItIs, nil
		}
	}
	return cmp.Or(wanted, InPlace), nil
}
