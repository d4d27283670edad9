package worktree

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"os"
	"path/filepath"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// Finder finds the states of files that are kept in this home: in the git directory of ours for the work
// tree that one was made in, or in another, also if the repository was moved since. It looks at each work
// tree once.
type Finder struct {
	e    Keeper
	at   map[string]string // git directory of ours by the root of a work tree; "": it has none
	all  []string          // git directories of ours; nil: not looked for yet
	from []string          // those in which something was found
	// partial is a partial clone among these; its Root is "" if none is.
	partial snapshot.Repo
}

// Finder returns one that has not looked yet.
func (e Keeper) Finder() *Finder { return &Finder{e: e, at: map[string]string{}} }

// Stores returns all git directories of ours in this home.
func (f *Finder) Stores(ctx context.Context) ([]string, error) {
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
// the git directory of ours that has it; both are "" if nothing does.
func (f *Finder) Find(ctx context.Context, root string, tree protocol.Tree) (store string, by protocol.Tree, err error) {
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
	for _, store := range stores {
		if err == nil && snapshot.Has(ctx, f.e.Env, store, tree) {
			if !slices.Contains(f.from, store) {
				f.from = append(f.from, store)
			}
			return store, snapshot.Substitute(ctx, f.e.Env, store, tree), nil
		}
	}
	return "", "", errors.Join(err, ctx.Err())
}

// Objects reads from where states were found. The error is a *protocol.Error.
func (f *Finder) Objects(ctx context.Context) (_ *snapshot.Objects, err error) {
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
func (f *Finder) Redacted(ctx context.Context) (map[protocol.Tree]bool, error) {
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
func (f *Finder) Redaction(
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

// Fetch makes a state of the files known in a git directory of ours, from another.
func (e Keeper) Fetch(ctx context.Context, store string, tree protocol.Tree) error {
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
