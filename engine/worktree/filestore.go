package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
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
	"github.com/united-workforce/uwf/util/runfiles"
	"github.com/united-workforce/uwf/util/threadid"
)

// What keeps the files of steps lies beside the store of nodes: it is collected and
// checked with that.

// CollectedFiles says what was collected of the files of threads.
type CollectedFiles struct {
	Repositories int   `json:"repositories"`
	Refs         int   `json:"refs"`       // of threads that are gone; what would be, in a dry run
	Freed        int64 `json:"freedBytes"` // less than 0: what was packed takes more
	// Removed counts the git directories of ours whose repository is gone, and that had
	// nothing that a thread needs.
	Removed int `json:"removed,omitempty"`
	// Worktrees counts those that commands were killed over, and that no thread has ever had.
	Worktrees int `json:"worktrees,omitempty"`
	// Failed lists the git directories of uwf that could not be collected, with the reason.
	Failed []string `json:"failed,omitempty"`
}

// CollectFiles removes the kept files of threads that are no longer in any of these homes, and
// packs the rest. alone runs while nobody makes a thread. A directory that cannot be collected does
// not stop the others.
func (e Keeper) CollectFiles(ctx context.Context, homes []string, dry bool,
	alone func(func() error) error) (CollectedFiles, error) {
	var done CollectedFiles
	if !dry {
		swept, err := e.Sweep(ctx)
		if done.Worktrees = len(swept); err != nil {
			return done, err
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
		if err == nil && !dry && common != "" && isGone(common) && c.Kept == 0 {
			done.Removed++
			c.After = 0
			err = os.RemoveAll(store)
		}
		if ctx.Err() != nil {
			return done, ctx.Err()
		}
		if err != nil {
			of := ""
			if refs, _ := snapshot.RefsOf(ctx, e.Env, store, slices.Sorted(maps.Keys(living))); len(refs) > 0 {
				of = ", which keeps files of thread " + path.Base(refs[0])
			}
			done.Failed = append(done.Failed, fmt.Sprintf("collect in %s%s: %v", store, of, err))
			continue
		}
		done.Repositories++
		done.Refs += c.Refs
		done.Freed += c.Before - c.After
	}
	return done, nil
}

// aDay is how long files that look like a thread's may still belong to a running command.
const aDay = 24 * time.Hour

// living adds the threads of some homes.
func (e Keeper) living(ctx context.Context, homes []string, ids map[string]bool) error {
	for _, home := range homes {
		standings, err := heads.Standings(ctx, fileheads.Open(home, durable.OS()))
		if err != nil {
			return err // a line that cannot be read may be of any thread
		}
		for id := range standings {
			ids[id] = true
		}
	}
	return nil
}

// namedTrees are the states of the files that the steps of some homes name, those that
// were undone too.
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

// FileFault is a step whose files are not what it says.
type FileFault struct {
	Thread string
	Step   protocol.Hash
	Tree   protocol.Tree
	Store  string // the git directory of ours; "": they are in none
	// Err says what is wrong with them; nil: they are not on this machine.
	Err error
}

// CheckFiles reads the files of every step that names some, and tells what is missing or
// damaged; n is how many states there are.
func (e Keeper) CheckFiles(ctx context.Context, wrong func(FileFault)) (n int, err error) {
	f, checks, verified := e.Finder(), map[string]*bundle.Verifier{}, map[protocol.Tree]error{}
	var readers []*snapshot.Objects
	defer func() {
		for _, r := range readers {
			_ = r.Close()
		}
	}()
	for s, err := range e.states(ctx, e.Heads, map[protocol.Hash]bool{}) {
		if err != nil {
			continue // of heads or a chain that are damaged: fsck says so
		}
		store, by, err := f.Find(ctx, s.root, s.tree)
		if err != nil {
			return len(verified), err
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
			readers, checks[store] = append(readers, r), bundle.NewVerifier(ctx, r)
		}
		if _, known := verified[s.tree]; !known {
			verified[s.tree] = checks[store].Tree(by)
		}
		if verified[s.tree] != nil {
			wrong(FileFault{Thread: s.thread, Step: s.step, Tree: s.tree, Store: store, Err: verified[s.tree]})
		}
	}
	return len(verified), ctx.Err()
}

// isGone reports whether there is nothing at a path.
func isGone(path string) bool {
	_, err := os.Lstat(path)
	return errors.Is(err, fs.ErrNotExist)
}

// AddFiles adds to the manifest of a bundle the states of the files of its threads that
// are on this machine, or what stands for them, and returns what reads them; missing is
// how many are elsewhere. Errors are *protocol.Error.
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

// KeepFiles keeps the files of a bundle that is being imported, for the threads that are given
// with their states, and returns how many states it kept. What was redacted here stays out: states
// without it stand for those that hold it.
func (e Keeper) KeepFiles(ctx context.Context, f *bundle.File,
	threads map[string][]protocol.Tree) (kept int, err error) {
	stores, err := e.Finder().Stores(ctx)
	if err != nil {
		return 0, err
	}
	k := keepingFiles{Keeper: e, file: f, stores: stores, instead: map[string]map[protocol.Tree]protocol.Tree{}}
	if err := k.stand(ctx); err != nil {
		return 0, err
	}
	byFunction := map[string]map[string][]protocol.Tree{}
	for thread, trees := range threads {
		for _, tree := range k.wanted(ctx, trees) {
			function := tree.Function()
			if byFunction[function] == nil {
				byFunction[function] = map[string][]protocol.Tree{}
			}
			byFunction[function][thread] = append(byFunction[function][thread], tree)
		}
	}
	for function, some := range byFunction {
		if err := k.keep(ctx, function, some); err != nil {
			return kept, err
		}
		for _, tree := range f.Manifest.Trees {
			if tree.Function() == function {
				kept++
			}
		}
	}
	return kept, nil
}

// keepingFiles are a bundle's files on their way into the git directories of ours.
type keepingFiles struct {
	Keeper
	file    *bundle.File
	stores  []string
	without *bundle.Without
	instead map[string]map[protocol.Tree]protocol.Tree // by hash function: what stands for states
}

// stand finds out what stands for states of the files: what the bundle says, unless the state is
// here, since nobody can check that one is the other with less in it; and what is left of a
// state without the contents that were redacted.
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
			k.standFor(tree, by)
		}
	}
	if len(k.instead) > 0 {
		k.Warn("the files come without what was redacted of them")
	}
	for _, s := range k.file.Manifest.Instead {
		here := func(store string) bool { return snapshot.Has(ctx, k.Env, store, s.Tree) }
		too := func(store string) bool { return snapshot.Substitute(ctx, k.Env, store, s.Tree) == s.By }
		if !slices.ContainsFunc(k.stores, here) || slices.ContainsFunc(k.stores, too) {
			k.standFor(s.Tree, left[s.By])
		}
	}
	return nil
}

func (k *keepingFiles) standFor(tree, by protocol.Tree) {
	function := tree.Function()
	if k.instead[function] == nil {
		k.instead[function] = map[protocol.Tree]protocol.Tree{}
	}
	k.instead[function][tree] = by
}

// wanted are the states to keep of a thread's: what is left of them. One for which another stands
// here already is not kept again.
func (k *keepingFiles) wanted(ctx context.Context, trees []protocol.Tree) (wanted []protocol.Tree) {
	for _, tree := range trees {
		redacted := func(store string) bool { return snapshot.Substitute(ctx, k.Env, store, tree) != tree }
		if by := k.instead[tree.Function()][tree]; by != "" {
			wanted = append(wanted, by)
		} else if !slices.ContainsFunc(k.stores, redacted) {
			wanted = append(wanted, tree)
		}
	}
	return wanted
}

// keep keeps the files of one hash function.
func (k *keepingFiles) keep(ctx context.Context, function string, threads map[string][]protocol.Tree) error {
	threads, err := k.known(ctx, function, threads)
	if err != nil {
		return err
	}
	objects := func(yield func(snapshot.Object, error) bool) {
		for o, err := range k.without.Objects(function) {
			if !yield(snapshot.Object(o), err) {
				return
			}
		}
	}
	store := k.Imported(function)
	if err := snapshot.AddObjects(ctx, k.Env, store, objects, k.without.Count(function), threads); err != nil {
		return err
	}
	return snapshot.SetSubstitutes(ctx, k.Env, store, k.instead[function])
}

// known are the states of threads that came with the bundle, now or before.
func (k *keepingFiles) known(ctx context.Context, function string,
	threads map[string][]protocol.Tree) (map[string][]protocol.Tree, error) {
	known := map[string][]protocol.Tree{}
	for thread, trees := range threads {
		elsewhere := slices.DeleteFunc(slices.Clone(trees), k.without.Has)
		list, err := snapshot.Missing(ctx, k.Env, k.Imported(function), elsewhere)
		if err != nil {
			return nil, err
		}
		trees = slices.DeleteFunc(slices.Clone(trees), func(tree protocol.Tree) bool { return slices.Contains(list, tree) })
		if len(trees) > 0 {
			known[thread] = trees
		}
	}
	return known, nil
}

// A command may be killed after it made a worktree but before a thread has it, or while it
// removes one. What it leaves belongs to nobody.

// LockCreation takes a lock that is held by whoever makes a thread or a worktree, until it exists. If it is free, that
// process is gone.
func (e Keeper) LockCreation(ctx context.Context, id string) (*durable.Held, error) {
	ctx, cancel := context.WithTimeout(ctx, treePatience)
	defer cancel()
	lock, err := durable.Lock(ctx, filepath.Join(e.Dirs.Locks(), "making-"+id+".lock"))
	if errors.Is(err, durable.ErrLocked) {
		return nil, fault.New(protocol.CodeLocked, "somebody is at work on it just now")
	}
	return lock, err
}

// Created notes that the worktree of a thread is its own from now on.
func (e Keeper) Created(id string) error {
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
	defer fault.Coded(&err)
	known, err := heads.Standings(ctx, e.Heads)
	if err != nil {
		return nil, err // a line that cannot be read may be of any thread
	}
	runs, err := os.ReadDir(filepath.Dir(e.Dirs.Run("x")))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, run := range runs {
		id := run.Name()
		if _, err := threadid.Parse(id); err != nil || known[id].Head != "" ||
			isGone(e.RunDir(id).File(runfiles.RestoreFile)) {
			continue
		}
		done, err := e.sweep(ctx, id)
		if err != nil {
			return swept, err
		}
		if done {
			swept = append(swept, e.Dirs.Worktree(id))
		}
	}
	return swept, e.sweepGone(ctx)
}

// sweep removes one, unless somebody is at work on it or has just made a thread of it.
func (e Keeper) sweep(ctx context.Context, id string) (done bool, err error) {
	lock, err := e.LockCreation(ctx, id)
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
	done, err = snapshot.RemovePlanned(ctx, e.Env, e.Dirs.Worktree(id), e.RunDir(id).File(runfiles.RestoreFile),
		func(path, commit string) error { return e.unused(ctx, path, commit) })
	if refused := (*snapshot.RefusedError)(nil); errors.As(err, &refused) {
		e.Warn(cwd.Shown(refused.Error()))
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
		return err
	}
	stores, err := e.Finder().Stores(ctx)
	if err != nil {
		return err
	}
	repos := map[string]bool{}
	for _, f := range facts {
		if f.Workspace != nil {
			repos[f.Workspace.Repo] = true
		}
	}
	for _, store := range stores {
		repos[snapshot.Owner(store)] = true
	}
	maps.DeleteFunc(repos, func(common string, _ bool) bool { return common == "" || isGone(common) })
	return snapshot.FinishRemovals(ctx, dir, slices.Sorted(maps.Keys(repos)))
}
