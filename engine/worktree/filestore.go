package worktree

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/safeopen"
	"github.com/united-workforce/uwf/util/threadid"
)

// The snapshot repositories are next to the node store, and are garbage-collected and checked together with
// it.

// CollectedFiles is the result of [Keeper.CollectFiles].
type CollectedFiles struct {
	Repositories int   `json:"repositories"`
	Refs         int   `json:"refs"`       // deleted threads whose snapshots were removed, or that a dry run would remove
	Freed        int64 `json:"freedBytes"` // negative if packing needed more space
	// Removed counts the removed snapshot repositories whose own repository is gone and that no thread needs.
	Removed int `json:"removed,omitempty"`
	// Worktrees counts the removed worktrees that interrupted commands left and that never belonged to a
	// thread.
	Worktrees int `json:"worktrees,omitempty"`
	// Failed lists what could not be collected, with the reasons.
	Failed []string `json:"failed,omitempty"`
}

// CollectFiles removes the snapshots of threads that no longer exist in any of the homes, and packs the rest.
// It removes inside alone, which must keep threads from being created. If one repository cannot be collected,
// it continues with the others.
func (e Keeper) CollectFiles(ctx context.Context, homes []string, dry bool,
	alone func(func() error) error) (CollectedFiles, error) {
	var done CollectedFiles
	if !dry {
		swept, err := e.Sweep(ctx)
		if done.Worktrees = len(swept); err != nil {
			done.Failed = append(done.Failed, err.Error())
		}
	}
	all, err := e.Finder().Stores(ctx)
	if err != nil || len(all) == 0 {
		return done, err
	}
	named, err := e.namedTrees(ctx, homes)
	if err != nil {
		return done, err
	}
	for _, store := range all {
		living, common := map[string]bool{}, snapshot.Owner(store)
		if err := e.living(ctx, homes, living); err != nil {
			return done, err
		}
		needs := snapshot.Needs{Trees: named, Gone: func(id string) bool {
			at, err := threadid.Time(id)
			return err == nil && !living[id] && e.Env.Now().Sub(at) > aDay
		}}
		c, err := snapshot.Collect(ctx, e.Env, store, common, needs, dry, func(remove func() error) error {
			return alone(func() error {
				if err := e.living(ctx, homes, living); err != nil {
					return err
				}
				return remove()
			})
		})
		if err == nil && !dry && common != "" && snapshot.IsGone(common) && c.Kept == 0 {
			done.Removed++
			c.After = 0
			err = os.RemoveAll(store)
		}
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if err != nil {
			done.Failed = append(done.Failed, fmt.Sprintf("collect garbage in %s: %v", store, err))
			continue
		}
		done.Repositories++
		done.Refs += c.Threads
		done.Freed += c.Before - c.After
	}
	return done, nil
}

// aDay is the age from which a snapshot without a thread is garbage. A younger one may belong to a running
// command that has not created its thread yet.
const aDay = 24 * time.Hour

// living adds the IDs of the homes' threads to ids.
func (e Keeper) living(ctx context.Context, homes []string, ids map[string]bool) error {
	for _, home := range homes {
		standings, err := heads.ThreadStates(ctx, fileheads.Open(home, durable.OS()))
		if err != nil {
			return err // an unreadable entry may belong to any thread
		}
		for id := range standings {
			ids[id] = true
		}
	}
	return nil
}

// namedTrees returns the snapshots that the threads of some homes refer to.
func (e Keeper) namedTrees(ctx context.Context, homes []string) ([]protocol.Tree, error) {
	named, seen := map[protocol.Tree]bool{}, map[protocol.Hash]bool{}
	for _, home := range homes {
		for s, err := range e.states(ctx, fileheads.Open(home, durable.OS()), seen) {
			if err != nil {
				return nil, err
			}
			named[s.tree] = true
		}
	}
	return slices.Sorted(maps.Keys(named)), nil
}

// FileFault is a step whose snapshot is missing or damaged.
type FileFault struct {
	Thread string
	Step   protocol.Hash
	Tree   protocol.Tree
	Store  string // the snapshot repository; "" if none has it
	// Err describes the damage; nil if the snapshot is not on this machine.
	Err error
}

// CheckFiles reads the snapshots of all steps, and calls wrong for each that is missing or damaged. n is the
// number of snapshots.
func (e Keeper) CheckFiles(ctx context.Context, wrong func(FileFault)) (n int, err error) {
	f, checks, verified := e.Finder(), map[string]*gitobject.Walk{}, map[protocol.Tree]error{}
	var readers []*snapshot.Objects
	defer func() {
		for _, r := range readers {
			_ = r.Close()
		}
	}()
	for s, err := range e.states(ctx, e.Heads, map[protocol.Hash]bool{}) {
		if err != nil {
			continue // damaged heads or chains, which fsck reports
		}
		store, by, err := f.Find(ctx, s.root, s.tree)
		if err != nil {
			return len(verified), err
		}
		if store == "" && s.step == "" {
			continue // imported without them
		}
		if store == "" {
			wrong(FileFault{Thread: s.thread, Step: s.step, Tree: s.tree})
			continue
		}
		if checks[store] == nil {
			r, err := snapshot.OpenObjects(e.Env, []string{store})
			if err != nil {
				return len(verified), err
			}
			readers, checks[store] = append(readers, r), bundle.Verify(ctx, r)
		}
		if _, known := verified[s.tree]; !known {
			_, err := checks[store].Trees(by)
			if missing := (*snapshot.MissingError)(nil); errors.As(err, &missing) && snapshot.Unfetched(ctx, e.Env, store, by) {
				err = nil
			}
			verified[s.tree] = err
		}
		if verified[s.tree] != nil {
			wrong(FileFault{Thread: s.thread, Step: s.step, Tree: s.tree, Store: store, Err: verified[s.tree]})
		}
	}
	return len(verified), ctx.Err()
}

// AddFiles adds the local snapshots of a bundle's threads, or their substitutes, to the bundle's manifest,
// and returns a reader for them. missing is the number of snapshots that are not on this machine. Errors are
// *protocol.Error.
func (e Keeper) AddFiles(ctx context.Context, m *bundle.Manifest) (from *snapshot.Objects, missing int, err error) {
	f := e.Finder()
	missing, err = m.AddTrees(ctx, e.Read, func(root string, tree protocol.Tree) (protocol.Tree, error) {
		_, by, err := f.Find(ctx, root, tree)
		return by, err
	})
	if err != nil {
		return nil, missing, fault.Of(err)
	}
	from, err = f.Objects(ctx)
	return from, missing, err
}

// KeepFiles stores the snapshots of a bundle that is being imported, and returns their number. Contents that were
// redacted here are not stored; their snapshots are replaced by substitutes without them.
func (e Keeper) KeepFiles(ctx context.Context, f *bundle.File) (kept int, err error) {
	stores, err := e.Finder().Stores(ctx)
	if err != nil {
		return 0, err
	}
	k := keepingFiles{Keeper: e, file: f, stores: stores, instead: map[protocol.Tree]protocol.Tree{}}
	if err := k.stand(ctx); err != nil {
		return 0, err
	}
	for _, function := range []string{"sha1", "sha256"} {
		n, err := k.keep(ctx, function)
		if kept += n; err != nil {
			return kept, err
		}
	}
	return kept, nil
}

// keepingFiles stores a bundle's files in our snapshot repositories.
type keepingFiles struct {
	Keeper
	file    *bundle.File
	stores  []string
	without *bundle.Without
	instead map[protocol.Tree]protocol.Tree // substitutes of snapshots
}

// stand determines the substitutes of snapshots. It uses the bundle's substitute only if the snapshot itself
// isn't here, because it cannot verify that they differ only in redacted files. For snapshots with contents
// that were redacted here, it makes substitutes.
func (k *keepingFiles) stand(ctx context.Context) error {
	gone, err := k.Finder().Redacted(ctx)
	if err != nil {
		return err
	}
	maps.Copy(gone, k.file.Redacted)
	k.without = k.file.Without(ctx, gone)
	left := map[protocol.Tree]protocol.Tree{}
	for _, tree := range k.file.Manifest.Trees {
		by, err := k.without.Tree(tree)
		if err != nil {
			return err
		}
		if left[tree] = by; by != tree {
			k.instead[tree] = by
		}
	}
	if len(k.instead) > 0 {
		k.Warn("redacted files are left out")
	}
	for _, s := range k.file.Manifest.Instead {
		here := func(store string) bool { return snapshot.Has(ctx, k.Env, store, s.Tree) }
		too := func(store string) bool { return snapshot.Substitute(ctx, k.Env, store, s.Tree) == s.By }
		if !slices.ContainsFunc(k.stores, here) || slices.ContainsFunc(k.stores, too) {
			k.instead[s.Tree] = left[s.By]
		}
	}
	return nil
}

// keep stores the files of one hash function, and returns the number of snapshots.
func (k *keepingFiles) keep(ctx context.Context, function string) (n int, err error) {
	store, isOther := k.Imported(function), func(tree protocol.Tree) bool { return tree.Function() != function }
	instead := maps.Clone(k.instead)
	maps.DeleteFunc(instead, func(tree, _ protocol.Tree) bool { return isOther(tree) })
	trees := slices.DeleteFunc(slices.Clone(k.file.Manifest.Trees), isOther)
	if len(trees)+len(instead) == 0 {
		return 0, nil
	}
	err = snapshot.AddObjects(ctx, k.Env, store, function, k.without.Objects(function), k.without.Count(function))
	if err != nil {
		return 0, err
	}
	return len(trees), snapshot.SetSubstitutes(ctx, k.Env, store, instead)
}

// If a command is killed between creating a worktree and creating its thread, or while it removes a worktree,
// the remains belong to no thread.

// LockCreation takes the lock that a process holds while it creates a thread or a worktree. If the lock is
// free but the thread doesn't exist, that process is gone.
func (e Keeper) LockCreation(ctx context.Context, id string) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	lock, err := durable.Lock(ctx, filepath.Join(e.Dirs.Locks(), "making-"+id+".lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil, fault.New(protocol.CodeLocked, "another process is using it")
	}
	return lock, err
}

// Created records that a thread's worktree now belongs to it.
func (e Keeper) Created(id string) error {
	return gone(os.Remove(e.RunDir(id).File(runfiles.RestoreFile)))
}

// Sweep removes worktrees that never belonged to a thread, with their branches, and finishes interrupted
// removals. It continues after an error, and returns the paths of the worktrees, even if something is left there.
func (e Keeper) Sweep(ctx context.Context) (swept []string, err error) {
	defer fault.Coded(&err)
	known, err := heads.ThreadStates(ctx, e.Heads)
	if err != nil {
		return nil, err // an unreadable entry may belong to any thread
	}
	runs, err := os.ReadDir(filepath.Dir(e.Dirs.Run("x")))
	if err = gone(err); err != nil {
		return nil, err
	}
	for _, run := range runs {
		id := run.Name()
		if _, err := threadid.Parse(id); err != nil || known[id].Head != "" ||
			snapshot.IsGone(e.RunDir(id).File(runfiles.RestoreFile)) {
			continue
		}
		done, failed := e.sweep(ctx, id)
		if err = errors.Join(err, failed); done {
			swept = append(swept, e.Dirs.Worktree(id))
		}
	}
	return swept, errors.Join(err, snapshot.FinishRemovals(ctx, filepath.Dir(e.Dirs.Worktree("x"))))
}

// sweep removes one such worktree, unless a process is working on it or has just created its thread.
func (e Keeper) sweep(ctx context.Context, id string) (done bool, err error) {
	lock, err := e.LockCreation(ctx, id)
	if fault.Is(err, protocol.CodeLocked) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = lock.RemoveAndUnlock() }()
	if known, err := heads.ThreadStates(ctx, e.Heads); err != nil || known[id].Head != "" {
		return false, err
	}
	done, err = e.removePlanned(ctx, id)
	if refused := (*snapshot.RefusedError)(nil); errors.As(err, &refused) {
		e.Warn(cwd.Shown(refused.Error()))
		return false, nil
	}
	if err != nil || !done {
		return false, err
	}
	return true, safeopen.RemoveAll(e.RunDir(id).Path)
}
