package worktree

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/place"
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
	root  string // of the work tree
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
	kept := StepFiles{Before: f.Before, After: f.Tree, Left: f.Left, Note: f.Note, env: e.Env, root: t.Last.Root}
	if prev := t.Last.Prev; kept.Before == "" && prev != nil {
		before, err := thread.Open(ctx, e.Read, *prev)
		if err != nil {
			return kept, fault.Of(err)
		}
		if before.Last != nil && before.Last.Files != nil {
			kept.Before = before.Last.Files.Tree
		}
	}
	var err error
	kept.store, err = e.WhereKept(ctx, t.Last.Root, f.Tree)
	kept.Before, kept.After = snapshot.Substitute(ctx, e.Env, kept.store, kept.Before), snapshot.Substitute(ctx, e.Env, kept.store,
		kept.After)
	if kept.store == "" && err == nil {
		err = noFiles(t.Head, true)
	}
	return kept, err
}

// WhereKept finds the git directory of ours that has some trees: that of the work tree in
// which one was made, or another of this home; "": none.
func (e Keeper) WhereKept(ctx context.Context, root string, trees ...protocol.Tree) (string, error) {
	return (&Stores{Keeper: e}).With(ctx, root, trees...)
}

// Stores are our git directories in this home, including those whose repository was moved.
type Stores struct {
	Keeper
	at    map[string]string // by the root of a work tree; "": it has none
	known []string          // all of them; nil: not looked for yet
	// Common is the user's git directory of each of these; what was imported has none.
	Common map[string]string
}

// With finds the one that has some trees.
func (s *Stores) With(ctx context.Context, root string, trees ...protocol.Tree) (string, error) {
	has := func(store string) bool {
		return !slices.ContainsFunc(trees, func(tree protocol.Tree) bool { return !snapshot.Has(ctx, s.Env, store, tree) })
	}
	own, tried := s.at[root]
	if !tried {
		if repo, err := snapshot.Find(ctx, s.Env, root); err == nil {
			own = repo.Store(s.Dirs.Git())
		}
		if s.at == nil {
			s.at = map[string]string{}
		}
		s.at[root] = own
	}
	if own != "" && has(own) {
		return own, nil
	}
	all, err := s.All(ctx)
	if err != nil {
		return "", err
	}
	for _, store := range all {
		if store != own && has(store) {
			return store, nil
		}
	}
	return "", ctx.Err()
}

// All are those that are there.
func (s *Stores) All(ctx context.Context) ([]string, error) {
	if s.known != nil {
		return s.known, nil
	}
	entries, err := os.ReadDir(s.Dirs.Git())
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Of(err)
	}
	s.known, s.Common = []string{}, map[string]string{}
	for _, e := range entries {
		if store := filepath.Join(s.Dirs.Git(), e.Name()); e.IsDir() {
			s.known, s.Common[store] = append(s.known, store), snapshot.Owner(store)
		}
	}
	return s.known, ctx.Err()
}

// Imported is our git directory for the files of imported threads: nobody knows yet in which
// repository they will work.
func (e Keeper) Imported(function string) string {
	return filepath.Join(e.Dirs.Git(), "imported-"+function)
}

// Fetch makes a state of the files known in a git directory of ours, from another.
func (e Keeper) Fetch(ctx context.Context, store string, tree protocol.Tree) error {
	if snapshot.Has(ctx, e.Env, store, tree) {
		return nil
	}
	from, err := e.WhereKept(ctx, "", tree)
	if err != nil || from == "" || from == store {
		return err // git says what is missing
	}
	return snapshot.Copy(ctx, e.Env, from, store, tree)
}

// FilesBetween returns the differences from the files after one step to those after another.
// Errors are those of [Keeper.StepFiles].
func (e Keeper) FilesBetween(ctx context.Context, old, new protocol.Hash) (StepFiles, error) {
	var between StepFiles
	for i, step := range []protocol.Hash{old, new} {
		kept, err := e.StepFiles(ctx, step)
		if err != nil {
			return kept, err
		}
		if i == 1 {
			kept.Before = between.After
		}
		between = kept
	}
	var err error
	between.store, err = e.WhereKept(ctx, between.root, between.Before, between.After)
	if imported := e.Imported(between.After.Function()); err == nil && between.store == "" && snapshot.Has(ctx, e.Env,
		imported, between.After) {
		between.store, err = imported, e.Fetch(ctx, imported, between.Before)
	}
	if err == nil && between.store == "" {
		err = fault.New(protocol.CodeFailed, "steps %s and %s are of two repositories: their files cannot be compared",
			old, new)
	}
	return between, err
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
		return fault.Hinted(coded, "uwf thread export --files, with the home that the step was made in (UWF_HOME), takes "+
			"them along")
	}
	return fault.Hinted(coded, "uwf run and uwf thread start keep them in a git work tree: --workspace in-place")
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
	store, err := e.WhereKept(ctx, t.Last.Root, t.Last.Files.Tree)
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
	Joins          bool      // the results of children that have worked in the same directory
	Again          string    // the command that tries it again
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
		return fault.Hinted(fault.New(protocol.CodeFailed, "the files cannot be kept: there is %v", full),
			"make room, and then: "+s.Again)
	case errors.As(err, &blocked):
		return fault.Hinted(fault.New(protocol.CodeFailed,
			"a restore of the files was cut off, and cannot be finished: %v", blocked), "move them away, and then: "+s.Again)
	case s.Thread.Facts.Workspace.Mode == InWorktree:
		return fault.Hinted(fault.New(protocol.CodeFailed, "the worktree of thread %s cannot be used: %v", s.Thread.ID,
			err), "uwf thread fork "+string(s.Thread.Head)+" makes another one")
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
		k.by.Warn("agent " + place.Shown(s.Agent) + " does not keep the files: its steps have none")
	case s.Files == nil:
	case s.Root != k.Spec.Root || !snapshot.Has(ctx, k.by.Env, k.Spec.Git, s.Files.Tree):
		k.by.Warn(fmt.Sprintf("the agent says that the files are %s, which is not kept in %s", s.Files.Tree, k.Spec.Git))
	case len(s.Files.Left) > 0 && !slices.Equal(s.Files.Left, k.reports):
		k.by.Warn("the step keeps the files without " + Some(s.Files.Left) + ": only " + place.Shown(k.Spec.Root) + " " +
			"has what is there")
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
