package workspace

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/files"
)

// AddFiles adds to the manifest of a bundle the states of the files of its threads that
// are on this machine, and returns what reads them; missing is how many are elsewhere.
// Of some of the steps, redacted, something was taken out of the files: no step names what
// stands for them, so that a bundle cannot have it. Errors are *protocol.Error.
func (e Keeper) AddFiles(ctx context.Context, m *bundle.Manifest) (from *files.Objects, missing int, redacted []string, err error) {
	s := e.Sources()
	missing, err = m.AddTrees(ctx, e.Read, func(root string, tree protocol.Tree) (bool, error) { return s.Has(ctx, root, tree) })
	if err != nil {
		return nil, missing, nil, fault.Of(err)
	}
	if redacted, err = e.stepsWith(ctx, *m, s.redacted); err != nil {
		return nil, missing, nil, fault.Of(err)
	}
	from, err = s.Open()
	return from, missing - len(s.redacted), redacted, err
}

// stepsWith are the steps, as a person calls them, of the threads of a bundle that begin or
// end with one of some states of the files.
func (e Keeper) stepsWith(ctx context.Context, m bundle.Manifest, trees map[protocol.Tree]bool) (named []string, err error) {
	if len(trees) == 0 {
		return nil, nil
	}
	for _, t := range m.Threads {
		chain, err := thread.Open(ctx, e.Read, t.Head)
		if err != nil {
			return nil, err
		}
		var steps []string
		for s, err := range chain.Steps(ctx) {
			if err != nil {
				return nil, err
			}
			if s.Files != nil && (trees[s.Files.Tree] || trees[s.Files.Before]) {
				steps = append(steps, fmt.Sprintf("%s@%d", t.Thread, s.Index+1))
			}
		}
		slices.Reverse(steps)
		named = append(named, steps...)
	}
	return named, nil
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
		if brings || e.anyRedacted(ctx, here, some) {
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
