package remotes

import (
	"context"
	"errors"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/step/files"
)

// fetching brings the files of threads here. At each level it reads which directories are
// below, asks for those and their files at once, and keeps them with the nodes. Everything is
// checked like the files of a bundle, and taken whole or not at all.
type fetching struct {
	*pulling
	parts  *bundle.Parts
	keeper workspace.Keeper
	local  *files.Objects         // of the git directories of ours; those of threads from elsewhere are not among them
	never  map[protocol.Tree]bool // what was taken out here
	asked  map[protocol.Tree]bool
	came   int
}

// errTakenOut means that a remote would bring back what was taken out here.
var errTakenOut = errors.New("files were taken out here that the remote would bring back: its files are left out")

// fetchFiles fetches the files that the threads need and that are missing here. It warns about
// what the remote does not have; an object that does not match its name is an error.
func (p *pulling) fetchFiles(ctx context.Context, f *bundle.File, parts *bundle.Parts) (came int, done func(), err error) {
	done = func() {}
	states, err := p.statesToBring(ctx, f)
	if err != nil || len(states) == 0 {
		return 0, done, err
	}
	w := &fetching{pulling: p, parts: parts, keeper: p.Engine.Files(), asked: map[protocol.Tree]bool{}}
	wanted, nowhere, err := w.begin(ctx, states)
	if err != nil && ctx.Err() == nil {
		p.warn("the files of the thread stay at %s: %v", p.Name, err)
		return 0, done, nil
	}
	if err != nil || len(nowhere) == 0 {
		return 0, done, err
	}
	lacking, err := p.lackedThere(ctx, nowhere)
	if errors.Is(err, errors.ErrUnsupported) {
		p.warn("%s keeps no files: those of the thread are not on this machine", p.Name)
		return 0, done, nil
	}
	if err != nil {
		return 0, done, err
	}
	if n := len(lacking); n > 0 {
		p.warn("%d of %d states of the files are not at %s", n, len(states), p.Name)
		wanted = slices.DeleteFunc(wanted, func(tree protocol.Tree) bool { return lacking[tree] })
		if n == len(nowhere) {
			return 0, done, nil
		}
	}
	if err := w.open(ctx); err != nil {
		return 0, done, err
	}
	done = func() { _ = w.local.Close() }
	err = w.levels(ctx, wanted)
	var missing *remote.MissingError
	if errors.Is(err, errTakenOut) || errors.As(err, &missing) {
		p.warn("the files of the thread stay at %s: %v", p.Name, err)
		return 0, done, nil
	}
	if err != nil {
		return 0, done, err
	}
	base, err := files.OpenObjects(w.keeper.Env, w.stores(wanted))
	if err != nil {
		return 0, done, err
	}
	local := w.local
	done = func() { _, _ = local.Close(), base.Close() }
	parts.SetTrees(slices.DeleteFunc(wanted, func(tree protocol.Tree) bool { return !parts.HasObject(tree) }), base)
	return w.came, done, nil
}

// statesToBring are the states of the files of the threads, back to where each stood here
// and with that; all of them, if that one is not here.
func (p *pulling) statesToBring(ctx context.Context, f *bundle.File) (all []state, err error) {
	for id, at := range p.at {
		until := cas.Hash("")
		if here, known := p.here[id]; known {
			until = here.Head
		}
		states, err := statesOf(ctx, f, at.Head, until)
		if err != nil {
			return nil, err
		}
		if n := len(states); n > 0 && until != "" {
			if store, err := p.Engine.Files().WhereKept(ctx, "", states[n-1].tree); err != nil || store == "" {
				if states, err = statesOf(ctx, f, at.Head, ""); err != nil {
					return nil, err
				}
			}
		}
		all = append(append(all, states...), begun(at.Facts)...)
	}
	return all, nil
}

// begin finds out which states are nowhere here. The directories with the files of threads
// from elsewhere get all states that they lack, so that any two can be compared.
func (w *fetching) begin(ctx context.Context, states []state) (wanted, nowhere []protocol.Tree, err error) {
	w.nearby(ctx)
	stores, err := (&workspace.Stores{Keeper: w.keeper}).All(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted = treesOf(states)
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	for _, store := range stores {
		wanted = slices.DeleteFunc(wanted, func(tree protocol.Tree) bool { return files.Instead(ctx, w.keeper.Env, store, tree) != tree })
	}
	nowhere = wanted
	for _, store := range stores {
		if nowhere, err = files.Lacking(ctx, w.keeper.Env, store, nowhere); err != nil {
			return nil, nil, err
		}
	}
	return wanted, nowhere, nil
}

// nearby makes known what the repository around the command's directory has: what a clone has
// need not be fetched.
func (w *fetching) nearby(ctx context.Context) {
	if w.Near == "" {
		return
	}
	if repo, err := files.Find(ctx, w.keeper.Env, w.Near); err == nil {
		_ = repo.Seed(ctx, repo.Store(w.keeper.Dirs.Git()), false) // it saves time, no more
	}
}

// open opens what is here.
func (w *fetching) open(ctx context.Context) (err error) {
	if w.never, err = w.keeper.Sources().Redacted(ctx); err != nil {
		return err
	}
	all, err := (&workspace.Stores{Keeper: w.keeper}).All(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(all), func(store string) bool {
		return store == w.keeper.Imported("sha1") || store == w.keeper.Imported("sha256")
	})
	w.local, err = files.OpenObjects(w.keeper.Env, own)
	return err
}

// stores are the git directories of ours that have the files of threads from elsewhere,
// for some trees.
func (w *fetching) stores(trees []protocol.Tree) (dirs []string) {
	for _, tree := range trees {
		if store := w.keeper.Imported(tree.Function()); !slices.Contains(dirs, store) && files.IsStore(store) {
			dirs = append(dirs, store)
		}
	}
	return dirs
}

// levels brings some directories, and all that is below them.
func (w *fetching) levels(ctx context.Context, roots []protocol.Tree) error {
	var level []bundle.Entry
	for _, root := range roots {
		level = append(level, bundle.Entry{ID: root, Dir: true})
	}
	for depth := 0; len(level) > 0; depth++ {
		if depth > bundle.MaxLevels {
			return remote.Faultf("more than %d directories are inside one another", bundle.MaxLevels)
		}
		var err error
		if level, err = w.level(ctx, level); err != nil {
			return err
		}
	}
	return nil
}

// level brings some objects, and returns what those name that are directories.
func (w *fetching) level(ctx context.Context, level []bundle.Entry) (next []bundle.Entry, err error) {
	wanted, err := w.unkept(ctx, level)
	if err != nil {
		return nil, err
	}
	take := func(o remote.Object) error {
		if err := w.parts.AddObject(o.ID, o.Kind == remote.Directory, o.Content); err != nil {
			return err
		}
		if w.size += int64(len(o.Content)); w.size > maxPull {
			return remote.Faultf("it sends more than %d bytes", int64(maxPull))
		}
		if o.Kind != remote.Directory {
			return nil
		}
		entries, err := bundle.Entries(o.ID, o.Content)
		if err != nil {
			return remote.Faultf("%v", err)
		}
		for _, e := range entries {
			if w.never[e.ID] {
				return errTakenOut
			}
			if !w.asked[e.ID] {
				w.asked[e.ID], next = true, append(next, e)
			}
		}
		return nil
	}
	var ask []protocol.Tree
	dirs := map[protocol.Tree]bool{}
	for _, e := range wanted {
		o := remote.Object{ID: e.ID, Kind: remote.File}
		if dirs[e.ID] = e.Dir; e.Dir {
			o.Kind = remote.Directory
		}
		if o.Content, err = w.local.Object(ctx, e.ID, e.Dir); err != nil || o.Check() != nil {
			ask = append(ask, e.ID)
			continue
		}
		if err := take(o); err != nil {
			return nil, err
		}
	}
	for part := range slices.Chunk(ask, remote.MaxHashes) {
		n := 0
		for o, err := range w.Remote.GetObjects(ctx, part) {
			if err != nil {
				return nil, err
			}
			if n == len(part) || o.ID != part[n] || dirs[o.ID] != (o.Kind == remote.Directory) {
				return nil, remote.Faultf("it sends object %q, which is not what it was asked for", o.ID)
			}
			if err := o.Check(); err != nil {
				return nil, err
			}
			if err := take(o); err != nil {
				return nil, err
			}
			n++
			w.came++
		}
		if n < len(part) {
			return nil, &remote.MissingError{Hash: string(part[n])}
		}
	}
	return next, ctx.Err()
}

// unkept are those objects that threads from elsewhere have not brought yet, with all below.
func (w *fetching) unkept(ctx context.Context, level []bundle.Entry) (rest []bundle.Entry, err error) {
	ids := map[string][]protocol.Tree{}
	for _, e := range level {
		ids[e.ID.Function()] = append(ids[e.ID.Function()], e.ID)
	}
	lacking := map[protocol.Tree]bool{}
	for function, some := range ids {
		if some, err = files.Lacking(ctx, w.keeper.Env, w.keeper.Imported(function), some); err != nil {
			return nil, err
		}
		for _, id := range some {
			lacking[id] = true
		}
	}
	return slices.DeleteFunc(level, func(e bundle.Entry) bool { return !lacking[e.ID] }), nil
}
