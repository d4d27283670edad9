package workspace

import (
	"context"
	"slices"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// AddFiles adds to the manifest of a bundle the states of the files of its threads that
// are on this machine, or what stands for them, and returns what reads them; missing is
// how many are elsewhere. Errors are *protocol.Error.
func (e Keeper) AddFiles(ctx context.Context, m *bundle.Manifest) (from *files.Objects, missing int, err error) {
	s := e.Sources()
	missing, err = m.AddTrees(ctx, e.Read, func(root string, tree protocol.Tree) (protocol.Tree, error) { return s.find(ctx, root, tree) })
	if err != nil {
		return nil, missing, fault.Of(err)
	}
	from, err = s.Open()
	return from, missing, err
}

// KeepFiles keeps the files of a bundle that is being imported, for the threads that
// are given with their states, and tells how many states it kept.
func (e Keeper) KeepFiles(ctx context.Context, f *bundle.File, threads map[string][]protocol.Tree) (kept int, err error) {
	byFunction := map[string]map[string][]protocol.Tree{}
	for thread, trees := range threads {
		for _, tree := range trees {
			function := tree.Function()
			if byFunction[function] == nil {
				byFunction[function] = map[string][]protocol.Tree{}
			}
			byFunction[function][thread] = append(byFunction[function][thread], tree)
		}
	}
	known := &Stores{Keeper: e}
	here, err := known.All(ctx)
	if err != nil {
		return 0, err
	}
	brings, err := bringsRedacted(f, here)
	if err != nil {
		return 0, fault.Of(err)
	}
	for function, some := range byFunction {
		if some, err = e.known(ctx, f, function, some); err != nil {
			return kept, err
		}
		instead, other := e.standing(ctx, f.Manifest, function, here)
		if brings || other || e.anyRedacted(ctx, here, some) {
			e.Warn("files were taken out here that the bundle brings: its files are left out")
			continue
		}
		objects := func(yield func(files.Object, error) bool) {
			for o, err := range f.Objects(function) {
				if !yield(files.Object(o), err) {
					return
				}
			}
		}
		if err := files.Keep(ctx, e.Env, e.Imported(function), objects, f.CountObjects(function), some); err != nil {
			return kept, err
		}
		if err := files.Stand(ctx, e.Env, e.Imported(function), instead); err != nil {
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

// known are the states of threads that came with a bundle, now or before.
func (e Keeper) known(ctx context.Context, f *bundle.File, function string, threads map[string][]protocol.Tree) (map[string][]protocol.Tree, error) {
	known := map[string][]protocol.Tree{}
	for thread, trees := range threads {
		elsewhere := slices.DeleteFunc(slices.Clone(trees), f.HasObject)
		list, err := files.Lacking(ctx, e.Env, e.Imported(function), elsewhere)
		if err != nil {
			return nil, err
		}
		lacking := map[protocol.Tree]bool{}
		for _, tree := range list {
			lacking[tree] = true
		}
		trees = slices.DeleteFunc(slices.Clone(trees), func(tree protocol.Tree) bool { return lacking[tree] })
		if len(trees) > 0 {
			known[thread] = trees
		}
	}
	return known, nil
}

// standing returns what a bundle says stands in for states of the files. Nobody can check that
// it is the same with less in it, so it counts only for states that are not here. other is set
// if one of them is known here and something else stands in for it.
func (e Keeper) standing(ctx context.Context, m bundle.Manifest, function string, stores []string) (instead map[protocol.Tree]protocol.Tree, other bool) {
	instead = map[protocol.Tree]protocol.Tree{}
	for _, s := range m.Instead {
		if s.Tree.Function() != function {
			continue
		}
		instead[s.Tree] = s.By
		for _, store := range stores {
			if !files.Has(ctx, e.Env, store, s.Tree) {
				continue
			}
			delete(instead, s.Tree)
			if by := files.Instead(ctx, e.Env, store, s.Tree); by != s.Tree && by != s.By {
				return nil, true
			}
		}
	}
	return instead, false
}

// anyRedacted reports whether something was taken out of a state of the files here.
func (e Keeper) anyRedacted(ctx context.Context, stores []string, threads map[string][]protocol.Tree) bool {
	for _, store := range stores {
		for _, trees := range threads {
			if slices.ContainsFunc(trees, func(tree protocol.Tree) bool { return files.Instead(ctx, e.Env, store, tree) != tree }) {
				return true
			}
		}
	}
	return false
}

// bringsRedacted reports whether a bundle has the content of a file that was taken out
// here, whatever states hold it there.
func bringsRedacted(f *bundle.File, stores []string) (bool, error) {
	for _, store := range stores {
		contents, err := files.RedactedContents(store)
		if err != nil || slices.ContainsFunc(contents, f.HasObject) {
			return err == nil, err
		}
	}
	return false, nil
}
