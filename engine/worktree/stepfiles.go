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
)

// StepFiles is the state of the files around a step.
type StepFiles struct {
	Before protocol.Tree // "": there were none
	After  protocol.Tree
	Left   []string // paths that are not kept
	Note   string

	env   env.Env
	store string // git directory of ours
}

// NoFilesError says that no state of the files is kept with a step.
type NoFilesError struct {
	Step protocol.Hash
	Gone bool // one was, and is nowhere on this machine
}

func (e *NoFilesError) Error() string {
	if e.Gone {
		return "the files of step " + string(e.Step) + " are not on this machine"
	}
	return "the files were not kept with step " + string(e.Step)
}

// StepFiles finds the state of the files that is kept with a step. Errors:
// *protocol.Error, which holds a [*NoFilesError] if there is none.
func (e Keeper) StepFiles(ctx context.Context, step protocol.Hash) (StepFiles, error) {
	t, err := thread.Open(ctx, e.Read, step)
	if err != nil {
		return StepFiles{}, fault.Of(err)
	}
	return e.FilesOf(ctx, t)
}

// FilesOf is [Keeper.StepFiles] of the head of a thread.
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

// FilesBetween returns the differences from the files after one step to those after another.
// Errors are those of [Keeper.StepFiles].
func (e Keeper) FilesBetween(ctx context.Context, old, new protocol.Hash) (StepFiles, error) {
	before, err := e.StepFiles(ctx, old)
	if err != nil {
		return before, err
	}
	between, err := e.StepFiles(ctx, new)
	if err != nil {
		return between, err
	}
	between.Before = before.After
	return between, e.fetch(ctx, between.store, between.Before)
}

// Changes lists what the step, or a person just before it, did to the files.
func (f StepFiles) Changes(ctx context.Context) ([]snapshot.Change, error) {
	return snapshot.Diff(ctx, f.env, f.store, f.Before, f.After)
}

// Patch writes it as a patch.
func (f StepFiles) Patch(ctx context.Context, w io.Writer) error {
	return snapshot.Patch(ctx, f.env, f.store, f.Before, f.After, w)
}

// maxListed bounds how many paths of a step are listed.
const maxListed = 1000

// FileChanges are the paths of changes, at most a thousand.
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

// noFiles is a [*NoFilesError] with its code and a way out.
func noFiles(step protocol.Hash, gone bool) error {
	none := &NoFilesError{Step: step, Gone: gone}
	coded := &protocol.Error{Code: protocol.CodeNotFound, Message: none.Error(), Err: none}
	if gone {
		return coded.Because("files-gone")
	}
	return coded.Because("files-not-kept")
}

// MostTotals bounds for how many steps the changes to the files are reported.
const MostTotals = 500

// Totals reports what the newest steps of a chain, at most so many, did to the files, keyed by
// step, and under "" what all of them did together. It is empty if the files are not kept, or
// not on this machine. It is for display: errors are not reported.
func (e Keeper) Totals(ctx context.Context, head protocol.Hash, most int) map[protocol.Hash]protocol.FileTotals {
	t, err := thread.Open(ctx, e.Read, head)
	if err != nil || t.Last == nil || t.Last.Files == nil {
		return nil
	}
	store, _, err := e.Finder().Find(ctx, t.Last.Root, t.Last.Files.Tree)
	if err != nil || store == "" {
		return nil
	}
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
	sums, err := snapshot.Totals(ctx, e.Env, store, pairs)
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

// Step is one that is about to be made, in a work tree whose files are kept with it.
type Step struct {
	Thread Thread
	Dir    string       // where the thread works
	Last   *thread.Step // that it follows; nil: it is the first one
	// Restore are the files that it begins with, in the place of those that are there; "": it begins
	// with these. Known are files that are kept with a step.
	Restore, Known protocol.Tree
	Open           *Checkout // its work tree, with these files in it; nil: it is opened now
	Previous       *Checkout // that of the step before, if this process has made it; nil: it has not
	Joins          bool      // the results of children that have worked in the same directory
	Again          string    // the request that tries it again, as a fact of a reason
}

// Before finds out what the files are before a step, and restores them if the step is made
// again; nil: they are not kept. It fails if something would be in the agent's way, while
// nobody is paid yet. If the files just cannot be kept, it warns, and the step goes on without
// them.
func (e Keeper) Before(ctx context.Context, s Step) (*Checkout, error) {
	w := s.Thread.Facts.Workspace
	if w == nil || w.Mode == ModeNone {
		return nil, e.claimedAround(ctx, s.Dir, s.Thread.ID)
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
	case kept && s.Joins: // the children have been at work here; who else has is not known
		k.Before = s.Last.Files.Tree
	default:
		k.Spec.Before = k.Spec.Tree
	}
	return k, nil
}

// moment is how long the files of a step count as those that the next one begins with: what somebody changes
// within it counts as the next step's.
const moment = time.Second

// resume opens the work tree in which this process has just made the step before, without looking at the
// files; nil: it has not, or somebody has been there since.
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

// notKept warns that the files are not kept. It fails if there is no room for them, since
// nobody is paid yet, and for a worktree of the thread's own: there is nothing else in it.
func (e Keeper) notKept(s Step, err error) error {
	var locked *protocol.Error
	var blocked *snapshot.InTheWayError
	var full *snapshot.NoRoomError
	switch {
	case errors.As(err, &locked), errors.Is(err, context.Canceled):
		return err
	case errors.As(err, &full):
		return fault.New(protocol.CodeFailed, "the files cannot be kept: there is %v", full).Because("no-space-for-files",
			"thread", s.Thread.ID, "again", s.Again)
	case errors.As(err, &blocked):
		return fault.New(protocol.CodeFailed, "a restore of the files was cut off, and cannot be finished: %v",
			blocked).Because("restore-blocked", "thread", s.Thread.ID, "again", s.Again)
	case s.Thread.Facts.Workspace.Mode == InWorktree:
		return fault.New(protocol.CodeFailed, "the worktree of thread %s cannot be used: %v", s.Thread.ID,
			err).Because("worktree-unusable", "head", string(s.Thread.Head))
	}
	e.Warn("the files are not kept with this step: " + err.Error())
	return nil
}

// SnapshotSpec is what an agent is told of where the files are kept; "": nowhere.
func (k *Checkout) SnapshotSpec() string {
	if k == nil {
		return ""
	}
	return k.Spec.String()
}

// Check warns if the state of the files that a step names is missing, and names what it leaves
// out, unless the step before has left out the same. The step counts all the same.
func (k *Checkout) Check(ctx context.Context, s protocol.Step) {
	switch {
	case k == nil:
	case s.Files == nil && s.Root == "": // who could not keep them has said so
		k.by.Warn("agent " + cwd.Shown(s.Agent) + " does not keep the files: its steps have none")
	case s.Files == nil:
	case s.Root != k.Spec.Root || !snapshot.Has(ctx, k.by.Env, k.Spec.Git, s.Files.Tree):
		k.by.Warn(fmt.Sprintf("the agent says that the files are %s, which is not kept in %s", s.Files.Tree, k.Spec.Git))
	default:
		k.after, k.madeAt = s.Files.Tree, k.by.Env.Now()
		if len(s.Files.Left) > 0 && !slices.Equal(s.Files.Left, k.reports) {
			k.by.Warn("the step keeps the files without " + Abbreviate(s.Files.Left) + ": only " + cwd.Shown(k.Spec.Root) + " " +
				"has what is there")
		}
	}
}

// Changed is what a step that was just made did to the files; nil: nothing, or it is
// not known.
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

// changed is what differs between two states, for people to look at; nil: nothing, or it is
// not known.
func (e Keeper) changed(ctx context.Context, store string, from, to protocol.Tree) *protocol.FileChanges {
	list, err := snapshot.Diff(ctx, e.Env, store, from, to)
	if err != nil || len(list) == 0 {
		return nil
	}
	return FileChanges(list)
}

// Tidy packs what many snapshots have left, after a step. It never fails a step.
func (k *Checkout) Tidy(ctx context.Context) {
	if k == nil {
		return
	}
	if err := snapshot.Tidy(ctx, k.by.Env, k.Spec.Git, k.Repo.Common); err != nil && ctx.Err() == nil {
		k.by.Warn("what keeps the files could not be packed: " + err.Error())
	}
}

// finder finds the states of files that are kept in this home: in the git directory of ours for the work
// tree that one was made in, or in another, also if the repository was moved since. It looks at each work
// tree once.
type finder struct {
	e    Keeper
	at   map[string]string // git directory of ours by the root of a work tree; "": it has none
	all  []string          // git directories of ours; nil: not looked for yet
	from []string          // those in which something was found
	// partial is a partial clone among these; its Root is "" if none is.
	partial snapshot.Repo
}

// Finder returns one that has not looked yet.
func (e Keeper) Finder() *finder { return &finder{e: e, at: map[string]string{}} }

// Stores returns all git directories of ours in this home.
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

// Find returns what stands on this machine for a state that was made in a work tree, mostly itself, and
// the git directory of ours that has it; both are "" if nothing does. Of several directories, one is
// preferred that has other states, too: a repository that was moved has a directory before and one after.
func (f *finder) Find(ctx context.Context, root string, tree protocol.Tree,
	others ...protocol.Tree) (store string, by protocol.Tree, err error) {
	if tree == "" {
		return "", "", nil
	}
	own, tried := f.at[root]
	if !tried && root != "" {
		if repo, err := snapshot.Find(ctx, f.e.Env, root); err == nil {
			if own = repo.Store(f.e.Dirs.Git()); repo.Partial {
				f.partial = repo
			}
		}
		f.at[root] = own
	}
	stores, err := f.Stores(ctx)
	if own != "" {
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

// Objects reads from where states were found. The error is a *protocol.Error.
func (f *finder) Objects(ctx context.Context) (_ *snapshot.Objects, err error) {
	defer fault.Coded(&err)
	if store := f.partial.Store(f.e.Dirs.Git()); f.partial.Root != "" && slices.Contains(f.from, store) {
		if err := f.partial.Seed(ctx, store, true); err != nil { // what was fetched since
			return nil, err
		}
	}
	from, err := snapshot.OpenObjects(f.e.Env, f.from)
	if err != nil {
		return nil, err
	}
	from.Partial = f.partial.Root
	return from, nil
}

// Redacted returns the contents of files that were redacted on this machine.
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

// Redaction returns what was redacted of some states of files, which are given with their work trees,
// as far as they are kept on this machine; nil: nothing.
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

// Imported is our git directory for the files of imported threads: nobody knows yet in which
// repository they will work.
func (e Keeper) Imported(function string) string {
	return filepath.Join(e.Dirs.Git(), "imported-"+function)
}

// fetch makes a state of the files known in a git directory of ours, from another.
func (e Keeper) fetch(ctx context.Context, store string, tree protocol.Tree) error {
	if tree == "" || snapshot.Has(ctx, e.Env, store, tree) {
		return nil
	}
	from, _, err := e.Finder().Find(ctx, "", tree)
	if err != nil || from == "" {
		return err // git says what is missing
	}
	return snapshot.Copy(ctx, e.Env, from, store, tree)
}

// state is a state of files that a step of a thread names.
type state struct {
	thread string
	step   protocol.Hash
	root   string // of the work tree
	tree   protocol.Tree
}

// states yields the states of files that the steps of threads name, those that were undone too, the newest
// first; an error is of the heads or of one thread, and others follow. It adds steps to seen, and leaves out
// those that are there; nil: a step that two threads share is yielded for both.
func (e Keeper) states(
	ctx context.Context, x heads.Heads, seen map[protocol.Hash]bool,
) iter.Seq2[state, error] {
	return func(yield func(state, error) bool) {
		standings, err := heads.Standings(ctx, x)
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
				if !e.statesOf(ctx, id, head, done, yield) {
					return
				}
			}
		}
	}
}

// statesOf yields those of one chain.
func (e Keeper) statesOf(
	ctx context.Context, id string, head protocol.Hash, seen map[protocol.Hash]bool, yield func(state, error) bool,
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
	return true
}
