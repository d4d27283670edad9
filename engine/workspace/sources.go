package workspace

import (
	"context"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
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

// Has reports whether a state that was made in a work tree is on this machine, and nothing
// was taken out of it.
func (s *Sources) Has(ctx context.Context, root string, tree protocol.Tree) (bool, error) {
	by, err := s.find(ctx, root, tree)
	return by == tree, err
}

// find returns what stands on this machine for a state that was made in a work tree, mostly
// itself; "": nothing does.
func (s *Sources) find(ctx context.Context, root string, tree protocol.Tree) (by protocol.Tree, err error) {
	e := s.stores.Keeper
	store, err := s.stores.With(ctx, root, tree)
	if store == "" || err != nil {
		return "", err
	}
	by = files.Instead(ctx, e.Env, store, tree)
	if s.used[store] {
		return by, nil
	}
	s.used[store] = true
	s.dirs = append(s.dirs, store)
	if repo, lost := files.Find(ctx, e.Env, root); lost == nil && repo.Partial && repo.Store(e.Dirs.Git()) == store {
		s.partial = repo.Root
		return by, repo.Seed(ctx, store, true) // what was fetched since
	}
	return by, nil
}

// Redacted are the contents of files that were taken out of what is kept on this machine.
func (s *Sources) Redacted(ctx context.Context) (map[protocol.Tree]bool, error) {
	all, err := s.stores.All(ctx)
	if err != nil {
		return nil, err
	}
	redacted := map[protocol.Tree]bool{}
	for _, store := range all {
		contents, err := files.RedactedContents(store)
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
func (s *Sources) Open() (*files.Objects, error) {
	from, err := files.OpenObjects(s.stores.Env, s.dirs)
	if err != nil {
		return nil, fault.Of(err)
	}
	from.Partial = s.partial
	return from, nil
}
