package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/gitdir"
)

// StepFiles holds the snapshots before and after a step.
type StepFiles struct {
	Before protocol.Tree // "" if there were no files
	After  protocol.Tree
	Left   []string // paths that the snapshot omits
	Note   string

	env   env.Env
	store string // snapshot repository
}

// NoFilesError means that a step has no snapshot.
type NoFilesError struct {
	Step protocol.Hash
	Gone bool // it has one, but not on this machine
}

func (e *NoFilesError) Error() string {
	if e.Gone {
		return "the files of step " + string(e.Step) + " are not on this machine"
	}
	return "step " + string(e.Step) + " has no file snapshot"
}

// StepFiles returns the snapshots around a step. Errors are *protocol.Error, which wraps a [*NoFilesError] if
// there is no snapshot.
func (e Keeper) StepFiles(ctx context.Context, step protocol.Hash) (StepFiles, error) {
	t, err := thread.Open(ctx, e.Read, step)
	if err != nil {
		return StepFiles{}, fault.Of(err)
	}
	return e.FilesOf(ctx, t)
}

// FilesOf is like [Keeper.StepFiles] for a thread's last step.
func (e Keeper) FilesOf(ctx context.Context, t *thread.Thread) (StepFiles, error) {
	if t.Last == nil || t.Last.Files == nil {
		return StepFiles{}, noFiles(t.Head, false)
	}
	f := t.Last.Files
	kept := StepFiles{Before: f.Before, After: f.Tree, Left: f.Left, Note: f.Note, env: e.Env}
	if prev := t.Last.Prev; kept.Before == "" && prev != nil {
		before, err := thread.Open(ctx, e.Read, *prev)
		if err != nil {
			return kept, fault.Of(err)
		}
		if before.Last != nil && before.Last.Files != nil {
			kept.Before = before.Last.Files.Tree
		}
	}
	store, after, err := e.Finder().Find(ctx, t.Last.Root, f.Tree, kept.Before)
	if store == "" && err == nil {
		err = noFiles(t.Head, true)
	}
	kept.store = store
	if err == nil {
		kept.Before, kept.After = snapshot.Substitute(ctx, e.Env, store, kept.Before), after
	}
	return kept, err
}

// FilesBetween returns the snapshots after two steps, for comparison. Errors are the same as for
// [Keeper.StepFiles].
func (e Keeper) FilesBetween(ctx context.Context, old, new protocol.Hash) (StepFiles, error) {
	return e.between(ctx, old, new, func(f StepFiles) protocol.Tree { return f.After })
}

// FilesOver is like [Keeper.FilesBetween] with the snapshot before the first step.
func (e Keeper) FilesOver(ctx context.Context, first, last protocol.Hash) (StepFiles, error) {
	return e.between(ctx, first, last, func(f StepFiles) protocol.Tree { return f.Before })
}

func (e Keeper) between(ctx context.Context, old, new protocol.Hash, of func(StepFiles) protocol.Tree) (StepFiles, error) {
	before, err := e.StepFiles(ctx, old)
	if err != nil {
		return before, err
	}
	between, err := e.StepFiles(ctx, new)
	if err != nil {
		return between, err
	}
	between.Before = of(before)
	return between, e.fetch(ctx, between.store, between.Before)
}

// Changes lists the changes by the step and by users just before it.
func (f StepFiles) Changes(ctx context.Context) ([]snapshot.Change, error) {
	return snapshot.Diff(ctx, f.env, f.store, f.Before, f.After)
}

// Patch writes the changes as a patch.
func (f StepFiles) Patch(ctx context.Context, w io.Writer) error {
	return snapshot.Patch(ctx, f.env, f.store, f.Before, f.After, w)
}

// maxListed is the maximum number of paths listed for a step.
const maxListed = 1000

// FileChanges returns the paths of changes, at most [maxListed].
func FileChanges(list []snapshot.Change) *protocol.FileChanges {
	c := &protocol.FileChanges{}
	for _, change := range list[:min(len(list), maxListed)] {
		switch change.Status {
		case 'A':
			c.Added = append(c.Added, change.Path)
		case 'D':
			c.Removed = append(c.Removed, change.Path)
		default:
			c.Changed = append(c.Changed, change.Path)
		}
	}
	return c
}

// noFiles returns a [*NoFilesError] with its code and the facts for a hint.
func noFiles(step protocol.Hash, gone bool) error {
	none := &NoFilesError{Step: step, Gone: gone}
	coded := &protocol.Error{Code: protocol.CodeNotFound, Message: none.Error(), Err: none}
	if gone {
		return coded.Because("files-gone")
	}
	return coded.Because("files-not-kept")
}

// MostTotals is the maximum number of steps whose file changes are counted.
const MostTotals = 500

// Totals counts the file changes of a chain's newest steps, up to most of them, by step; the key "" holds the
// total. It is empty if there are no snapshots on this machine. It is meant for display and ignores errors.
func (e Keeper) Totals(ctx context.Context, head protocol.Hash, most int) map[protocol.Hash]protocol.FileTotals {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil {
		return nil
	}
	finder := e.Finder()
	store, _, err := finder.Find(ctx, t.Last.Root, t.Last.Files.Tree)
	if err != nil || store == "" {
		return nil
	}
	stores := append([]string{store}, finder.all...) // the files of pulled steps are apart from those of our own
	var of []protocol.Hash
	var pairs [][2]protocol.Tree
	for s, err := range t.Steps(ctx) {
		if err != nil {
			break
		}
		if n := len(pairs); n > 0 && pairs[n-1][0] == "" && s.Files != nil {
			pairs[n-1][0] = s.Files.Tree
		}
		if len(of) == most {
			break
		}
		if s.Files != nil {
			of, pairs = append(of, s.Hash), append(pairs, [2]protocol.Tree{s.Files.Before, s.Files.Tree})
		}
	}
	of, pairs = append(of, ""), append(pairs, [2]protocol.Tree{pairs[len(pairs)-1][0], t.Last.Files.Tree})
	sums, err := snapshot.Totals(ctx, e.Env, stores, pairs)
	if err != nil {
		return nil
	}
	totals := map[protocol.Hash]protocol.FileTotals{}
	for i, sum := range sums {
		if sum != nil {
			totals[of[i]] = *sum
		}
	}
	return totals
}

// Step is a step that is about to be made, in a work tree with snapshots.
type Step struct {
	Thread Thread
	Dir    string       // the thread's directory
	Last   *thread.Step // the previous step; nil for the first step
	// Restore is the snapshot to start with; "" means the current files. Known is a tree that some step
	// keeps.
	Restore, Known protocol.Tree
	Open           *Checkout // work tree that already contains these files; nil if it is not open yet
	Previous       *Checkout // work tree of the previous step, if this process made it
	Joins          bool      // the step joins children that worked in the same directory
	Again          string    // request that retries the step, for error reasons
}

// Before takes the snapshot before a step, and restores files if the step is retried. It returns nil if there
// are no snapshots. It fails if something would get in the agent's way, as long as the step has cost nothing.
// If only the snapshot fails, it warns, and the step runs without one.
func (e Keeper) Before(ctx context.Context, s Step) (*Checkout, error) {
	w := s.Thread.Facts.Workspace
	if w == nil || w.Mode == ModeNone {
		dir, err := cwd.Real(s.Dir)
		if err != nil {
			return nil, nil //nolint:nilerr // the step reports it
		}
		return nil, e.unclaimed(ctx, gitdir.Top(dir), s.Thread.ID, false)
	}
	k, err := s.Open, error(nil)
	if k == nil {
		k, err = e.resume(ctx, s)
	}
	if k == nil && err == nil {
		k, err = e.Open(ctx, s.Thread.ID, s.Dir, w)
	}
	if err != nil {
		return nil, e.notKept(s, err)
	}
	if s.Restore != "" && s.Open == nil {
		if err := e.replace(ctx, k, s.Thread.ID, s.Known, s.Restore); err != nil {
			k.Release()
			return nil, err
		}
	}
	k.Before = k.Spec.Tree
	if s.Last != nil && s.Last.Files != nil {
		k.reports = s.Last.Files.Left
	}
	switch kept := s.Last != nil && s.Last.Files != nil; {
	case kept && s.Last.Files.Tree == k.Spec.Tree:
	case kept && s.Joins: // the children worked here; other changes cannot be told apart
		k.Before = s.Last.Files.Tree
	default:
		k.Spec.Before = k.Spec.Tree
	}
	return k, nil
}

// moment is the time for which the snapshot after a step also serves as the one before the next step. Changes
// by others in that time are attributed to the next step.
const moment = time.Second

// resume opens the work tree in which this process has just made the previous step, without reading the
// files. It returns nil if the process made no step there, or if another process has used the work tree
// since.
func (e Keeper) resume(ctx context.Context, s Step) (*Checkout, error) {
	p := s.Previous
	if p == nil || p.after == "" || p.dir != s.Dir || s.Restore != "" || e.Env.Now().Sub(p.madeAt) > moment ||
		s.Last == nil || s.Last.Files == nil || s.Last.Files.Tree != p.after {
		return nil, nil
	}
	k := &Checkout{Repo: p.Repo, dir: p.dir, Spec: p.Spec, Left: s.Last.Files.Left, by: e}
	var err error
	if k.lock, err = e.LockTree(ctx, s.Thread.ID, k.Repo.Root); err != nil {
		return nil, err
	}
	if k.Repo.Resume(&k.Spec, p.after) {
		return k, nil
	}
	k.Release()
	return nil, nil
}

// notKept warns that there is no snapshot. It returns an error instead if the disk is full, because the step
// has cost nothing yet, and for a thread's own worktree, whose files would otherwise be lost.
func (e Keeper) notKept(s Step, err error) error {
	var locked *protocol.Error
	var blocked *snapshot.InTheWayError
	var full *snapshot.NoRoomError
	switch {
	case errors.As(err, &locked), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &full):
		return fault.New(protocol.CodeFailed, "cannot keep the files: %v", full).Because("no-space-for-files",
			"thread", s.Thread.ID, "again", s.Again)
	case errors.As(err, &blocked):
		return fault.New(protocol.CodeFailed, "cannot finish an interrupted restore of the files: %v",
			blocked).Because("restore-blocked", "thread", s.Thread.ID, "again", s.Again)
	case s.Thread.Facts.Workspace.Mode == InWorktree:
		return fault.New(protocol.CodeFailed, "cannot use the worktree of thread %s: %v", s.Thread.ID,
			err).Because("worktree-unusable", "head", string(s.Thread.Head))
	}
	e.Warn("the files are not kept with this step: " + err.Error())
	return nil
}

// SnapshotSpec returns the snapshot settings that an agent receives; "" means no snapshots.
func (k *Checkout) SnapshotSpec() string {
	if k == nil {
		return ""
	}
	return k.Spec.String()
}

// Check warns if a step's snapshot is missing, and about paths that it omits, unless the previous step
// omitted the same. The step is valid anyway.
func (k *Checkout) Check(ctx context.Context, s protocol.Step) {
	switch {
	case k == nil:
	case s.Files == nil && s.Root == "": // the agent has reported why
		k.by.Warn("agent " + cwd.Shown(s.Agent) + " does not keep files, so its steps have no snapshots")
	case s.Files == nil:
	case s.Root != k.Spec.Root || s.Files.Tree != k.Spec.Tree && !snapshot.Has(ctx, k.by.Env, k.Spec.Git, s.Files.Tree):
		k.by.Warn(fmt.Sprintf("the agent reported snapshot %s, which is not in %s", s.Files.Tree, k.Spec.Git))
	default:
		k.after, k.madeAt = s.Files.Tree, k.by.Env.Now()
		if len(s.Files.Left) > 0 && !slices.Equal(s.Files.Left, k.reports) {
			k.by.Warn("the snapshot lacks " + Abbreviate(s.Files.Left) + "; only " + cwd.Shown(k.Spec.Root) + " has them")
		}
	}
}

// Changed returns the file changes of a step that was just made; nil if there are none or they are unknown.
func (k *Checkout) Changed(ctx context.Context, s protocol.Step) *protocol.FileChanges {
	if k == nil || s.Files == nil {
		return nil
	}
	changed := k.by.changed(ctx, k.Spec.Git, k.Before, s.Files.Tree)
	if len(s.Files.Left) > 0 {
		if changed == nil {
			changed = &protocol.FileChanges{}
		}
		changed.Left = s.Files.Left
	}
	return changed
}

// changed returns the differences between two snapshots for display; nil if there are none or they are
// unknown.
func (e Keeper) changed(ctx context.Context, store string, from, to protocol.Tree) *protocol.FileChanges {
	list, err := snapshot.Diff(ctx, e.Env, store, from, to)
	if err != nil || len(list) == 0 {
		return nil
	}
	return FileChanges(list)
}

// Tidy packs the objects of many snapshots after a step. It never fails a step.
func (k *Checkout) Tidy(ctx context.Context) {
	if k == nil {
		return
	}
	if err := snapshot.Tidy(ctx, k.by.Env, k.Spec.Git, k.Repo.Common); err != nil && ctx.Err() == nil {
		k.by.Warn("could not pack the file store: " + err.Error())
	}
}

// finder finds snapshots in this home's snapshot repositories: first in the one for the work tree in which a
// snapshot was made, then in the others, because a repository can be moved.
type finder struct {
	e     Keeper
	roots map[string]string // a work tree of each snapshot repository, if known
	all   []string          // all snapshot repositories; nil if not listed yet
	from  []string          // those in which a snapshot was found
}

// Finder returns a new finder.
func (e Keeper) Finder() *finder { return &finder{e: e, roots: map[string]string{}} }

// Stores returns all snapshot repositories of this home.
func (f *finder) Stores(ctx context.Context) ([]string, error) {
	if f.all != nil {
		return f.all, nil
	}
	entries, err := os.ReadDir(f.e.Dirs.Git())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Of(err)
	}
	f.all = []string{}
	for _, e := range entries {
		if e.IsDir() {
			f.all = append(f.all, filepath.Join(f.e.Dirs.Git(), e.Name()))
		}
	}
	return f.all, ctx.Err()
}

// Find returns the local substitute for a snapshot made in a work tree, usually the snapshot itself, and the
// snapshot repository that contains it; both are "" if there is none. If several repositories contain it, it
// prefers one that also contains the trees with. A user's repository that was moved has one from before and
// one from after the move.
func (f *finder) Find(ctx context.Context, root string, tree protocol.Tree,
	others ...protocol.Tree) (store string, by protocol.Tree, err error) {
	if tree == "" {
		return "", "", nil
	}
	stores, err := f.Stores(ctx)
	// Nobody has verified the work tree, which only determines the order.
	if _, common, ok := gitdir.Dirs(root); ok && root != "" {
		own := snapshot.Repo{Common: common}.Store(f.e.Dirs.Git())
		f.roots[own] = root
		stores = append([]string{own}, stores...)
	}
	for _, at := range stores {
		if err != nil || !snapshot.Has(ctx, f.e.Env, at, tree) {
			continue
		}
		lacks := func(other protocol.Tree) bool { return other != "" && !snapshot.Has(ctx, f.e.Env, at, other) }
		whole := !slices.ContainsFunc(others, lacks)
		if store == "" || whole {
			store = at
		}
		if whole {
			break
		}
	}
	if store == "" {
		return "", "", errors.Join(err, ctx.Err())
	}
	if !slices.Contains(f.from, store) {
		f.from = append(f.from, store)
	}
	return store, snapshot.Substitute(ctx, f.e.Env, store, tree), nil
}

// Objects returns a reader for the repositories in which snapshots were found. The error is a
// *protocol.Error.
func (f *finder) Objects(ctx context.Context) (_ *snapshot.Objects, err error) {
	defer fault.Coded(&err)
	partial := ""
	for _, store := range f.from {
		root, known := f.roots[store]
		if !known {
			continue
		}
		if repo, err := snapshot.Find(ctx, f.e.Env, root); err == nil && repo.Partial {
			partial = repo.Root
			if err := repo.Seed(ctx, store, true); err != nil { // objects that were fetched since
				return nil, err
			}
		}
	}
	from, err := snapshot.OpenObjects(f.e.Env, f.from)
	if err == nil {
		from.Partial = partial
	}
	return from, err
}

// Redacted returns the file contents that were redacted on this machine.
func (f *finder) Redacted(ctx context.Context) (map[protocol.Tree]bool, error) {
	stores, err := f.Stores(ctx)
	redacted := map[protocol.Tree]bool{}
	for _, store := range stores {
		contents, lost := snapshot.RedactedContents(store)
		err = errors.Join(err, lost)
		for _, id := range contents {
			redacted[id] = true
		}
	}
	return redacted, fault.OrNil(err)
}

// Redaction returns what was redacted from some snapshots, given with their work trees, as known on this
// machine. It returns nil if nothing was.
func (f *finder) Redaction(
	ctx context.Context, states func() (map[protocol.Tree]string, error),
) (*heads.Redacted, error) {
	stores, err := f.Stores(ctx)
	if err != nil || !slices.ContainsFunc(stores, snapshot.HasRedactions) {
		return nil, err
	}
	roots, err := states()
	if err != nil {
		return nil, err
	}
	r := &heads.Redacted{Instead: map[protocol.Tree]protocol.Tree{}}
	for tree, root := range roots {
		_, by, err := f.Find(ctx, root, tree)
		if err != nil {
			return nil, err
		}
		if by != "" && by != tree && len(r.Instead) < heads.MaxRedacted {
			r.Instead[tree] = by
		}
	}
	for _, store := range f.from {
		contents, err := snapshot.RedactedContents(store)
		paths, perr := snapshot.RedactedPaths(store)
		if err := errors.Join(err, perr); err != nil {
			return nil, err
		}
		r = r.And(&heads.Redacted{Contents: contents, Paths: paths})
	}
	if len(r.Contents) == 0 && len(r.Instead) == 0 {
		return nil, nil
	}
	return r, nil
}

// Imported returns the snapshot repository for imported threads, for which no user's repository is known yet.
func (e Keeper) Imported(function string) string {
	return filepath.Join(e.Dirs.Git(), "imported-"+function)
}

// fetch makes snapshots available in a snapshot repository, from others.
func (e Keeper) fetch(ctx context.Context, store string, trees ...protocol.Tree) error {
	for _, tree := range trees {
		if tree == "" || snapshot.Has(ctx, e.Env, store, tree) {
			continue
		}
		from, _, err := e.Finder().Find(ctx, "", tree)
		if err == nil && from != "" { // otherwise, git will report what is missing
			err = snapshot.Copy(ctx, e.Env, from, store, tree)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// state is a snapshot that a thread refers to.
type state struct {
	thread string
	step   protocol.Hash // "" for the initial files
	root   string        // root of the work tree
	tree   protocol.Tree
}

// states yields the snapshots that threads refer to, newest first, including those of undone steps. After
// an error about the heads or a thread, it continues with the others. It adds steps to seen and skips those
// already in it. If seen is nil, a step that two threads share is yielded for both.
func (e Keeper) states(
	ctx context.Context, x heads.Heads, seen map[protocol.Hash]bool,
) iter.Seq2[state, error] {
	return func(yield func(state, error) bool) {
		standings, err := heads.ThreadStates(ctx, x)
		facts, lost := x.AllFacts(ctx)
		if err = errors.Join(err, lost); err != nil && !yield(state{}, err) {
			return
		}
		for id, at := range standings {
			done := seen
			if done == nil {
				done = map[protocol.Hash]bool{}
			}
			for _, head := range append([]protocol.Hash{at.Head}, facts[id].Undone...) {
				if !e.statesOf(ctx, id, head, facts[id], done, yield) {
					return
				}
			}
		}
	}
}

// statesOf does the same as [Keeper.states] for one chain.
func (e Keeper) statesOf(
	ctx context.Context, id string, head protocol.Hash, f heads.Facts, seen map[protocol.Hash]bool,
	yield func(state, error) bool,
) bool {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil {
		return yield(state{thread: id}, fmt.Errorf("thread %s: %w", id, err))
	}
	for s, err := range t.Steps(ctx) {
		if err != nil {
			return yield(state{thread: id}, fmt.Errorf("thread %s: %w", id, err))
		}
		if seen[s.Hash] {
			break
		}
		if seen[s.Hash] = true; s.Files == nil {
			continue
		}
		for _, tree := range []protocol.Tree{s.Files.Before, s.Files.Tree} {
			if tree != "" && !yield(state{id, s.Hash, s.Root, tree}, nil) {
				return false
			}
		}
	}
	if w := t.Start.Workspace; w != nil && w.Tree != "" && !yield(state{thread: id, tree: w.Tree}, nil) {
		return false
	}
	return f.Repository == nil || f.Repository.Tree == "" || yield(state{thread: id, tree: f.Repository.Tree}, nil)
}
