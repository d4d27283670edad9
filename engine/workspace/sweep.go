package workspace

import (
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// A command may be killed after it made a worktree but before a thread has it, or while it
// removes one. What it leaves belongs to nobody.

// Making is held by whoever makes a thread or a worktree, until it exists. If it is free, that
// process is gone.
func (e Keeper) Making(ctx context.Context, id string) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	lock, err := durable.Lock(ctx, filepath.Join(e.Dirs.Locks(), "making-"+id+".lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil, fault.New(protocol.CodeLocked, "somebody is at work on it just now")
	}
	return lock, err
}

// Made notes that the worktree of a thread is its own from now on.
func (e Keeper) Made(id string) error {
	err := os.Remove(e.RunDir(id).File(runfiles.RestoreFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Sweep removes the worktrees that never belonged to a thread, with their branches, and
// finishes removals that were cut off. It returns the worktrees' paths, whether or not
// something is left there.
func (e Keeper) Sweep(ctx context.Context) (swept []string, err error) {
	known, err := heads.Standings(ctx, e.Heads)
	if err != nil {
		return nil, fault.Of(err) // a line that cannot be read may be of any thread
	}
	runs, err := os.ReadDir(filepath.Dir(e.Dirs.Run("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Of(err)
	}
	for _, run := range runs {
		id := run.Name()
		if _, err := threadid.Parse(id); err != nil || known[id].Head != "" || isGone(e.RunDir(id).File(runfiles.RestoreFile)) {
			continue
		}
		done, err := e.sweep(ctx, id)
		if err != nil {
			return swept, fault.Of(err)
		}
		if done {
			swept = append(swept, e.Dirs.Worktree(id))
		}
	}
	return swept, e.sweepGone(ctx)
}

// sweep removes one, unless somebody is at work on it or has just made a thread of it.
func (e Keeper) sweep(ctx context.Context, id string) (done bool, err error) {
	lock, err := e.Making(ctx, id)
	var coded *protocol.Error
	if errors.As(err, &coded) && coded.Code == protocol.CodeLocked {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.RemoveAndUnlock() }()
	if known, err := heads.Standings(ctx, e.Heads); err != nil || known[id].Head != "" {
		return false, err
	}
	done, err = files.Unmake(ctx, e.Env, e.Dirs.Worktree(id), e.RunDir(id).File(runfiles.RestoreFile),
		func(path, commit string) error { return e.unused(ctx, path, commit) })
	if refused := (*files.RefusedError)(nil); errors.As(err, &refused) {
		e.Warn(place.Shown(refused.Error()))
		return false, nil
	}
	if err != nil || !done {
		return false, err
	}
	return true, os.RemoveAll(e.RunDir(id).Path)
}

// sweepGone finishes removals that were cut off.
func (e Keeper) sweepGone(ctx context.Context) error {
	dir := filepath.Dir(e.Dirs.Worktree("x"))
	if isGone(dir) {
		return nil
	}
	facts, err := e.Heads.AllFacts(ctx)
	if err != nil && facts == nil {
		return fault.Of(err)
	}
	s := &Stores{Keeper: e}
	if _, err := s.All(ctx); err != nil {
		return err
	}
	repos := map[string]bool{}
	for _, f := range facts {
		if f.Workspace != nil {
			repos[f.Workspace.Repo] = true
		}
	}
	for _, common := range s.Common {
		repos[common] = true
	}
	maps.DeleteFunc(repos, func(common string, _ bool) bool { return common == "" || isGone(common) })
	if err := files.EndRemovals(ctx, dir, slices.Sorted(maps.Keys(repos))); err != nil {
		return fault.Of(err)
	}
	return nil
}
