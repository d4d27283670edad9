package workspace

import (
	"context"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// Sources are the git directories of ours that have some states of files.
type Sources struct {
	stores   *Stores
	used     map[string]bool
	dirs     []string
	partial  string
	redacted map[protocol.Tree]bool // states of which something was taken out
}

// Sources begins to look for states of files.
func (e Keeper) Sources() *Sources {
	return &Sources{stores: &Stores{Keeper: e}, used: map[string]bool{}, redacted: map[protocol.Tree]bool{}}
}

// Has reports whether a state that was made in a work tree is on this machine, and nothing
// was taken out of it.
func (s *Sources) Has(ctx context.Context, root string, tree protocol.Tree) (bool, error) {
	e := s.stores.Keeper
	store, err := s.stores.With(ctx, root, tree)
	if store == "" || err != nil {
		return false, err
	}
	if files.Instead(ctx, e.Env, store, tree) != tree {
		s.redacted[tree] = true
		return false, nil
	}
	if s.used[store] {
		return true, nil
	}
	s.used[store] = true
	s.dirs = append(s.dirs, store)
	if repo, lost := files.Find(ctx, e.Env, root); lost == nil && repo.Partial && repo.Store(e.Dirs.Git()) == store {
		s.partial = repo.Root
		return true, repo.Seed(ctx, store, true) // what was fetched since
	}
	return true, nil
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
