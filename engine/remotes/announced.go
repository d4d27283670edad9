package remotes

import (
	"context"
	"path/filepath"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/place"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// announced returns all that a remote is told about a thread that stands at a head. Whoever
// continues it elsewhere without a clone of its repository needs the files that it began with:
// look says that these may be read now, if no step has kept them yet.
func (l *Link) announced(ctx context.Context, id string, head cas.Hash, f heads.Facts, look bool) (heads.Facts, error) {
	w := f.Workspace
	if f.Repository != nil || w == nil || w.Base == "" {
		return shared(f), nil
	}
	r := &heads.Repository{Base: w.Base}
	if f.Parent != nil { // where its parent has files of a remote alone, it has no clone either
		above, err := l.Heads.Facts(ctx, f.Parent.Thread)
		if err != nil {
			return f, err
		}
		if above.Repository != nil {
			r.Base = above.Repository.Base
		}
	}
	states, err := statesOf(ctx, l.Store, head, "")
	if err != nil {
		return f, err
	}
	r.Dir = l.below(ctx, id, w)
	switch n := len(states); {
	case n > 0:
		r.Tree = states[n-1].tree
	case look:
		k, err := l.Engine.Files().OpenFiles(ctx, id, w.Root, w)
		if err != nil && ctx.Err() != nil {
			return f, err
		}
		if err != nil {
			l.warn("the files of thread %s do not go to %s: %v", id, l.Name, err)
			break
		}
		r.Tree = k.Spec.Tree
		k.Release()
	}
	f.Repository = r
	return shared(f), nil
}

// recall saves here what was found out for a remote, so that all remotes are told the same.
func (l *Link) recall(ctx context.Context, id string, known, said heads.Facts) error {
	if known.Repository != nil || len(begun(said)) == 0 {
		return nil
	}
	return l.Heads.SetFacts(ctx, id, heads.Facts{Repository: said.Repository})
}

// below is where a thread works below the root of its work tree, as every machine writes it.
func (l *Link) below(ctx context.Context, id string, w *heads.Workspace) string {
	root := l.Engine.Dirs.Worktree(id)
	if w.Mode == workspace.InPlace {
		repo, err := files.Find(ctx, l.Engine.Env, w.Root)
		if err != nil {
			return ""
		}
		root = repo.Root
	} else if real, err := place.Real(filepath.Dir(root)); err == nil {
		root = filepath.Join(real, id)
	}
	if rel, ok := place.Below(root, w.Root); ok && rel != "." {
		return filepath.ToSlash(rel)
	}
	return ""
}

// begun are the files that a thread began with, as a remote is told of them.
func begun(f heads.Facts) []state {
	if f.Repository == nil || !f.Repository.Tree.Valid() {
		return nil
	}
	return []state{{tree: f.Repository.Tree}}
}

// sensibleRepository removes claims about a repository that cannot be true.
func sensibleRepository(r *heads.Repository) *heads.Repository {
	const longest = 4096
	if r == nil || !protocol.Tree("sha1:"+r.Base).Valid() && !protocol.Tree("sha256:"+r.Base).Valid() {
		return nil
	}
	is := *r
	if !is.Tree.Valid() {
		is.Tree = ""
	}
	if !filepath.IsLocal(filepath.FromSlash(is.Dir)) || len(is.Dir) > longest {
		is.Dir = ""
	}
	return &is
}
