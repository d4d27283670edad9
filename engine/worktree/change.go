package worktree

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// Change is a planned change of a thread's files, in its locked work tree.
type Change struct {
	*Checkout
	From, To protocol.Tree
	id       string
	layout   snapshot.Layout
}

// Follow changes the files of a thread from those after one step (before) to those at its head (now); k is
// its work tree. If the current files are others, or a snapshot is not available, it does nothing.
func (e Keeper) Follow(ctx context.Context, k *Checkout, id string, before, now *thread.Thread) error {
	from, here := e.FilesOf(ctx, before)
	to, there := e.FilesOf(ctx, now)
	if here != nil || there != nil || k.Spec.Tree != from.After {
		return nil //nolint:nilerr // the next step reports it
	}
	_, err := e.follow(ctx, k, id, now.Head, from.After, to.After)
	return err
}

// filesStay is the reason of an error after which all files are unchanged.
const filesStay = "files-not-restored"

// Plan checks whether the files of a thread can be replaced by the tree to, and locks its work tree. It
// returns nil if the files are not snapshotted, so that they stay as they are. from is the tree that must be
// there now; "" accepts any. Plan writes nothing in the work tree. If the files were changed, the error is a
// *protocol.Error that wraps a [*snapshot.UnsavedError].
func (e Keeper) Plan(ctx context.Context, t Thread, dir string, from, to protocol.Tree) (*Change, error) {
	if w := t.Facts.Workspace; w == nil || w.Mode == ModeNone || to == "" {
		return nil, nil
	}
	k, err := e.Open(ctx, t.ID, dir, t.Facts.Workspace)
	if err != nil {
		return nil, fault.Of(fmt.Errorf("restore files: %w", err)).Because(filesStay)
	}
	c, err := e.prepare(ctx, k, t.ID, from, to)
	if err != nil {
		k.Release()
	}
	return c, err
}

// prepare checks whether the files in an open work tree can be replaced by a tree.
func (e Keeper) prepare(ctx context.Context, k *Checkout, id string, from, to protocol.Tree) (*Change, error) {
	if err := e.fetch(ctx, k.Spec.Git, from, to); err != nil {
		return nil, notRestored(err)
	}
	layout, err := snapshot.Prepare(ctx, e.Env, k.Spec, from, to)
	if err != nil {
		return nil, notRestored(err)
	}
	return &Change{Checkout: k, From: cmp.Or(from, layout.Taken.Tree), To: to, id: id, layout: layout}, nil
}

// Write writes the files and returns the changes, or nil if there were none. The intent of the change must be
// durable, because an interruption leaves only some of the files written.
func (c *Change) Write(ctx context.Context) (*protocol.FileChanges, error) {
	if c == nil {
		return nil, nil
	}
	if err := c.layout.Write(ctx); err != nil {
		return nil, notRestored(err)
	}
	c.Spec.Tree = c.To
	return c.by.changed(ctx, c.Spec.Git, c.From, c.To), nil
}

// Claim records that a thread's files are about to be written in a locked work tree. Steps of other threads
// are refused until that thread's intent, which follows, is settled, even while the lock is free.
func (e Keeper) Claim(k *Checkout, id string) error {
	path := e.claimOf(k.Repo.Root)
	if err := durable.MkdirAll(e.FS, filepath.Dir(path), 0o700); err != nil {
		return err
	}
	return durable.WriteFile(e.FS, path, []byte(id), 0o600)
}

// WriteLocked is like [Change.Write], but keeps the work tree locked for the step that is made with these
// files. It returns nil if nothing is snapshotted.
func (c *Change) WriteLocked(ctx context.Context) (*Checkout, error) {
	if c == nil {
		return nil, nil
	}
	_, err := c.Write(ctx)
	return c.Checkout, err
}

// Claim does the same as [Keeper.Claim] for the change's work tree.
func (c *Change) Claim() error {
	if c == nil {
		return nil
	}
	return c.by.Claim(c.Checkout, c.id)
}

const maxClaim = 100 // bytes

func (e Keeper) claimOf(root string) string {
	tree := e.ofTree(root)
	return filepath.Join(filepath.Dir(tree), "claimed", filepath.Base(tree))
}

// unclaimed returns an error if a change for another thread was interrupted in the work tree, because its
// files belong to no step then. If locked, it removes a claim without an intent.
func (e Keeper) unclaimed(ctx context.Context, root, id string, locked bool) error {
	path := e.claimOf(root)
	by, err := safeopen.ReadFile(path, maxClaim, safeopen.NoFollow)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	other := string(by)
	if _, parsed := threadid.Parse(other); err != nil || parsed != nil {
		return err
	}
	_, none := heads.Find(ctx, e.Heads, other)
	switch i, err := e.RunDir(other).Intent(); {
	case errors.Is(none, heads.ErrNoThread) && locked: // a fork was killed before its thread was created
		e.Warn("a fork was interrupted while it wrote its files to " + cwd.Shown(root) + "; some files may be from it")
		return e.FS.Remove(path)
	case err == nil && i.Kind == "" && locked:
		return e.FS.Remove(path)
	case err == nil && i.Kind == "", other == id:
		return nil
	case errors.Is(none, heads.ErrNoThread):
		lock, err := e.LockTree(ctx, id, root) // which removes the claim, unless the fork is running
		if err == nil {
			err = lock.RemoveAndUnlock()
		}
		return err
	}
	return fault.New(protocol.CodeLocked, "restoring files in %s for thread %s was interrupted or is still running",
		cwd.Shown(root), other).Because("other-thread-cut-off", "other", other)
}

// Release unlocks the work tree.
func (c *Change) Release() {
	if c != nil {
		c.Checkout.Release()
	}
}

// follow replaces the files of a thread by those at its head, if they match another tree now. It returns the
// changes.
func (e Keeper) follow(ctx context.Context, k *Checkout, id string, head protocol.Hash,
	from, to protocol.Tree) (*protocol.FileChanges, error) {
	c, err := e.prepare(ctx, k, id, from, to)
	if err != nil {
		return nil, err
	}
	if err := c.Claim(); err != nil {
		return nil, err
	}
	dir := e.RunDir(id)
	i := rundir.Intent{Kind: rundir.Moving, HeadFrom: head, HeadTo: head, TreeFrom: from, TreeTo: to}
	if err := dir.SetIntent(i); err != nil {
		return nil, err
	}
	changed, err := c.Write(ctx)
	if err != nil {
		return nil, err
	}
	return changed, dir.DropIntent()
}

// CurrentTree returns the snapshot of a thread's current files, or "" if there is none.
func (e Keeper) CurrentTree(ctx context.Context, t Thread, dir string) protocol.Tree {
	if w := t.Facts.Workspace; w == nil || w.Mode == ModeNone {
		return ""
	}
	k, err := e.Open(ctx, t.ID, dir, t.Facts.Workspace)
	if err != nil {
		return ""
	}
	defer k.Release()
	return k.Spec.Tree
}

// Restore replaces the files of a thread by a tree, whatever they are now. known is a tree that some step
// keeps. If the current files are others, Restore saves them under a separate ref and warns about it.
func (e Keeper) Restore(ctx context.Context, t Thread, dir string, known, to protocol.Tree) error {
	if w := t.Facts.Workspace; w == nil || w.Mode == ModeNone || to == "" {
		return nil
	}
	k, err := e.Open(ctx, t.ID, dir, t.Facts.Workspace)
	if err != nil {
		return fault.Of(fmt.Errorf("restore files: %w", err)).Because(filesStay)
	}
	defer k.Release()
	if base := t.Facts.Workspace.Base; base != "" {
		if _, same := k.Repo.Commit(ctx, base); !same && ctx.Err() == nil {
			other := fault.New(protocol.CodeFailed, "files not restored: %s is not the repository of thread %s", cwd.Shown(k.Repo.Root), t.ID)
			return other.Because("other-repository", "thread", t.ID).Because(filesStay)
		}
	}
	return e.replace(ctx, k, t.ID, known, to)
}

// replace is like [Keeper.Restore] for an open work tree.
func (e Keeper) replace(ctx context.Context, k *Checkout, id string, known, to protocol.Tree) error {
	if err := e.fetch(ctx, k.Spec.Git, to); err != nil {
		return notRestored(err)
	}
	if err := e.Claim(k, id); err != nil {
		return err
	}
	rescued, err := snapshot.Replace(ctx, e.Env, k.Spec, known, to)
	e.warnOf(k, rescued)
	if err != nil {
		return notRestored(err)
	}
	k.Spec.Tree = to
	return nil
}

// warnOf warns about changed files that were replaced and saved under a separate ref.
func (e Keeper) warnOf(k *Checkout, saved snapshot.Rescued) {
	if saved.Ref != "" {
		e.Warn("restored the files; these had changed: " + Abbreviate(saved.Paths) + "; to see the old content: git --git-dir " +
			plaintext.Word(k.Spec.Git) + " show " + gitobject.Name(saved.Tree)[:12] + ":PATH")
	}
}

// mostStashed is the maximum number of paths in a hint.
const mostStashed = 5

// notRestored returns the error for files that could not be restored, with the facts for a hint.
func notRestored(err error) error {
	var unsaved *snapshot.UnsavedError
	var blocked *snapshot.InTheWayError
	var protected *snapshot.ProtectedError
	why := &protocol.Error{Code: protocol.CodeFailed, Err: err}
	switch {
	case errors.As(err, &unsaved):
		why.Message = "files not restored: these changed since the last step: " + Abbreviate(unsaved.Paths)
		var words []string // without paths, git would also stash the steps' work that it doesn't track
		for _, path := range unsaved.Paths[:min(len(unsaved.Paths), mostStashed+1)] {
			words = append(words, plaintext.Word(path))
		}
		if len(words) > mostStashed {
			words = nil
		}
		return why.Because("files-changed", "paths", strings.Join(words, " ")).Because(filesStay)
	case errors.As(err, &blocked):
		why.Message = "files not restored: " + cwd.Shown(blocked.Error())
		return why.Because("files-in-the-way").Because(filesStay)
	case errors.As(err, &protected):
		why.Message = "files not restored: " + cwd.Shown(protected.Error())
		return why.Because("files-protected", "dir", protected.Dirs[0]).Because(filesStay)
	}
	return fault.Of(fmt.Errorf("restore files: %w", err)).Because(filesStay)
}

// TreesAround returns the files before and after the last step of a chain; "" means that they were not
// snapshotted or are unknown, which causes a warning. It is an error if they are not on this machine.
func (e Keeper) TreesAround(ctx context.Context, t Thread, chain *thread.Thread) (before, after protocol.Tree, err error) {
	switch w := t.Facts.Workspace; {
	case w == nil || w.Mode == ModeNone || chain.Last == nil:
		return "", "", nil
	case chain.Last.Files == nil:
		e.Warn((&NoFilesError{Step: chain.Head}).Error() + "; the files stay as they are")
		return "", "", nil
	}
	step, err := e.FilesOf(ctx, chain)
	if err != nil {
		return "", "", fault.Of(err).Because(filesStay)
	}
	return step.Before, step.After, nil
}
