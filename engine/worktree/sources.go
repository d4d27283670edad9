package worktree

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
)

// Sources are the git directories of ours that have some states of files.
type Sources struct {
	stores  *Stores
	used    map[string]bool
	dirs    []string
	partial string
}

// Sources begins to look for states of files.
func (e Keeper) Sources() *Sources {
	return &Sources{stores: &Stores{Keeper: e}, used: map[string]bool{}}
}

// Find returns what stands on this machine for a state that was made in a work tree, mostly
// itself; "": nothing does.
func (s *Sources) Find(ctx context.Context, root string, tree protocol.Tree) (by protocol.Tree, err error) {
	e := s.stores.Keeper
	store, err := s.stores.With(ctx, root, tree)
	if store == "" || err != nil {
		return "", err
	}
	by = snapshot.Substitute(ctx, e.Env, store, tree)
	if s.used[store] {
		return by, nil
	}
	s.used[store] = true
	s.dirs = append(s.dirs, store)
	if repo, lost := snapshot.Find(ctx, e.Env, root); lost == nil && repo.Partial && repo.Store(e.Dirs.Git()) == store {
		s.partial = repo.Root
		return by, repo.Seed(ctx, store, true) // what was fetched since
	}
	return by, nil
}

// Redaction is what was redacted of some states of files, which are given with their work trees,
// as far as they are kept on this machine; nil: nothing.
func (s *Sources) Redaction(
	ctx context.Context, states func() (map[protocol.Tree]string, error),
) (*heads.Redacted, error) {
	all, err := s.stores.All(ctx)
	if err != nil || !slices.ContainsFunc(all, snapshot.HasRedactions) {
		return nil, err
	}
	roots, err := states()
	if err != nil {
		return nil, err
	}
	r := &heads.Redacted{Instead: map[protocol.Tree]protocol.Tree{}}
	for tree, root := range roots {
		by, err := s.Find(ctx, root, tree)
		if err != nil {
			return nil, err
		}
		if by != "" && by != tree && len(r.Instead) < heads.MaxRedacted {
			r.Instead[tree] = by
		}
	}
	for _, store := range s.dirs {
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

// Redacted are the contents of files that were taken out of what is kept on this machine.
func (s *Sources) Redacted(ctx context.Context) (map[protocol.Tree]bool, error) {
	all, err := s.stores.All(ctx)
	if err != nil {
		return nil, err
	}
	redacted := map[protocol.Tree]bool{}
	for _, store := range all {
		contents, err := snapshot.RedactedContents(store)
		if err != nil {
			return nil, fault.Of(err)
		}
		for _, id := range contents {
			redacted[id] = true
		}
	}
	return redacted, nil
}

// Open reads those that were found. The error is a *protocol.Error.
func (s *Sources) Open() (*snapshot.Objects, error) {
	from, err := snapshot.OpenObjects(s.stores.Env, s.dirs)
	if err != nil {
		return nil, fault.Of(err)
	}
	from.Partial = s.partial
	return from, nil
}
