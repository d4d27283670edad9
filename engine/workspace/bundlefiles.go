package workspace

import (
	"context"
	"maps"
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
	missing, err = m.AddTrees(ctx, e.Read, func(root string, tree protocol.Tree) (protocol.Tree, error) { return s.Find(ctx, root, tree) })
	if err != nil {
		return nil, missing, fault.Of(err)
	}
	from, err = s.Open()
	return from, missing, err
}

// KeepFiles keeps the files of a bundle that is being imported, for the threads that are given
// with their states, and returns how many states it kept. What was redacted here stays out: states
// without it stand for those that hold it.
func (e Keeper) KeepFiles(ctx context.Context, f *bundle.File, threads map[string][]protocol.Tree) (kept int, err error) {
	stores, err := (&Stores{Keeper: e}).All(ctx)
	if err != nil {
		return 0, err
	}
	k := keepingFiles{Keeper: e, file: f, stores: stores, instead: map[string]map[protocol.Tree]protocol.Tree{}}
	if err := k.stand(ctx); err != nil {
		return 0, err
	}
	byFunction := map[string]map[string][]protocol.Tree{}
	for thread, trees := range threads {
		for _, tree := range k.wanted(ctx, trees) {
			function := tree.Function()
			if byFunction[function] == nil {
				byFunction[function] = map[string][]protocol.Tree{}
			}
			byFunction[function][thread] = append(byFunction[function][thread], tree)
		}
	}
	for function, some := range byFunction {
		if err := k.keep(ctx, function, some); err != nil {
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

// keepingFiles are a bundle's files on their way into the git directories of ours.
type keepingFiles struct {
	Keeper
	file    *bundle.File
	stores  []string
	without *bundle.Without
	instead map[string]map[protocol.Tree]protocol.Tree // by hash function: what stands for states
}

// stand finds out what stands for states of the files: what the bundle says, unless the state is
// here, since nobody can check that one is the other with less in it; and what is left of a
// state without the contents that were redacted.
func (k *keepingFiles) stand(ctx context.Context) error {
	gone := maps.Clone(k.file.Redacted)
	if gone == nil {
		gone = map[protocol.Tree]bool{}
	}
	for _, store := range k.stores {
		contents, err := files.RedactedContents(store)
		if err != nil {
			return fault.Of(err)
		}
		for _, id := range contents {
			gone[id] = true
		}
	}
	k.without = k.file.Without(ctx, gone)
	left := map[protocol.Tree]protocol.Tree{}
	for _, tree := range k.file.Manifest.Trees {
		by, err := k.without.Tree(tree)
		if err != nil {
			return fault.Of(err)
		}
		if left[tree] = by; by != tree {
			k.standFor(tree, by)
		}
	}
	if len(k.instead) > 0 {
		k.Warn("the files come without what was redacted of them")
	}
	for _, s := range k.file.Manifest.Instead {
		here := func(store string) bool { return files.Has(ctx, k.Env, store, s.Tree) }
		too := func(store string) bool { return files.Instead(ctx, k.Env, store, s.Tree) == s.By }
		if !slices.ContainsFunc(k.stores, here) || slices.ContainsFunc(k.stores, too) {
			k.standFor(s.Tree, left[s.By])
		}
	}
	return nil
}

func (k *keepingFiles) standFor(tree, by protocol.Tree) {
	function := tree.Function()
	if k.instead[function] == nil {
		k.instead[function] = map[protocol.Tree]protocol.Tree{}
	}
	k.instead[function][tree] = by
}

// wanted are the states to keep of a thread's: what is left of them. One for which another stands
// here already is not kept again.
func (k *keepingFiles) wanted(ctx context.Context, trees []protocol.Tree) (wanted []protocol.Tree) {
	for _, tree := range trees {
		redacted := func(store string) bool { return files.Instead(ctx, k.Env, store, tree) != tree }
		if by := k.instead[tree.Function()][tree]; by != "" {
			wanted = append(wanted, by)
		} else if !slices.ContainsFunc(k.stores, redacted) {
			wanted = append(wanted, tree)
		}
	}
	return wanted
}

// keep keeps the files of one hash function.
func (k *keepingFiles) keep(ctx context.Context, function string, threads map[string][]protocol.Tree) error {
	threads, err := k.known(ctx, function, threads)
	if err != nil {
		return err
	}
	objects := func(yield func(files.Object, error) bool) {
		for o, err := range k.without.Objects(function) {
			if !yield(files.Object(o), err) {
				return
			}
		}
	}
	store := k.Imported(function)
	if err := files.Keep(ctx, k.Env, store, objects, k.without.Count(function), threads); err != nil {
		return err
	}
	return files.Stand(ctx, k.Env, store, k.instead[function])
}

// known are the states of threads that came with the bundle, now or before.
func (k *keepingFiles) known(ctx context.Context, function string, threads map[string][]protocol.Tree) (map[string][]protocol.Tree, error) {
	known := map[string][]protocol.Tree{}
	for thread, trees := range threads {
		elsewhere := slices.DeleteFunc(slices.Clone(trees), k.without.Has)
		list, err := files.Lacking(ctx, k.Env, k.Imported(function), elsewhere)
		if err != nil {
			return nil, err
		}
		trees = slices.DeleteFunc(slices.Clone(trees), func(tree protocol.Tree) bool { return slices.Contains(list, tree) })
		if len(trees) > 0 {
			known[thread] = trees
		}
	}
	return known, nil
}
