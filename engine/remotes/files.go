package remotes

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/sorting"
)

// The files of threads are transferred with their nodes, as git objects. Each object is sent after the
// objects that it refers to. If a push is killed, the next one sends the rest.

// state is a snapshot and the work tree it was made in.
type state struct {
	root string
	tree protocol.Tree
}

// statesOf returns the snapshots around the steps of a chain, newest first and without duplicates, back to
// and including the step until; "" returns all.
func statesOf(ctx context.Context, r cas.Reader, head, until cas.Hash) (list []state, err error) {
	chain, err := thread.Open(ctx, r, head)
	if err != nil {
		return nil, err
	}
	seen := map[protocol.Tree]bool{"": true}
	for s, err := range chain.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Files != nil {
			for _, tree := range []protocol.Tree{s.Files.Tree, s.Files.Before} {
				if !seen[tree] {
					seen[tree], list = true, append(list, state{s.Root, tree})
				}
			}
		}
		if s.Hash == until {
			return list, nil
		}
	}
	if w := chain.Start.Workspace; w != nil && !seen[w.Tree] { // files that a child starts with
		list = append(list, state{tree: w.Tree})
	}
	return list, nil
}

func treesOf(states []state) []protocol.Tree {
	trees := make([]protocol.Tree, 0, len(states))
	for _, s := range states {
		trees = append(trees, s.tree)
	}
	return trees
}

// sendFiles sends the snapshots around the steps of a chain that the remote lacks, and the initial files in
// outgoing. there is the remote's head. Snapshots that are missing here or were redacted only cause a warning;
// the steps are pushed anyway.
func (l *Link) sendFiles(ctx context.Context, head, there cas.Hash, outgoing heads.Facts) (sent int, err error) {
	if l.check {
		there = ""
	}
	states, err := statesOf(ctx, l.Store, head, there)
	states = append(states, unfinished(outgoing)...)
	if err != nil || len(states) == 0 {
		return 0, err
	}
	lacking, err := l.lackedThere(ctx, treesOf(states))
	if errors.Is(err, errors.ErrUnsupported) {
		l.warn("%s stores no files, so the thread's files stay here", l.Name)
		return 0, nil
	}
	if oldest := states[len(states)-1].tree; err == nil && there != "" && lacking[oldest] { // it may lack earlier ones as well
		if states, err = statesOf(ctx, l.Store, head, ""); err == nil {
			states = append(states, unfinished(outgoing)...)
			lacking, err = l.lackedThere(ctx, treesOf(states))
		}
	}
	if err != nil || len(lacking) == 0 && !l.check {
		return 0, err
	}
	return l.sendStates(ctx, states, lacking)
}

// lackedThere returns the objects that the remote lacks.
func (l *Link) lackedThere(ctx context.Context, ids []protocol.Tree) (map[protocol.Tree]bool, error) {
	lacking := map[protocol.Tree]bool{}
	for part := range slices.Chunk(ids, remote.MaxHashes) {
		some, err := l.Remote.MissingObjects(ctx, part)
		if err == nil && l.check {
			var bad []protocol.Tree
			get := func(rest []protocol.Tree) iter.Seq2[remote.Object, error] { return l.Remote.GetObjects(ctx, rest) }
			bad, err = notReturned(without(part, some), get)
			some = append(some, bad...)
		}
		if err != nil {
			return nil, err
		}
		for _, id := range some {
			lacking[id] = true
		}
	}
	return lacking, nil
}

// sending sends objects to the remote.
type sending struct {
	*Link
	from    *snapshot.Objects
	lacking map[protocol.Tree]bool // objects that the remote lacks
	never   map[protocol.Tree]bool // objects that were redacted here
	entries map[protocol.Tree][]gitobject.Entry
	bad     map[protocol.Tree]error // objects that cannot be sent, with the reasons
	done    map[protocol.Tree]bool
	batch   []remote.Object
	size    int
	sent    int
}

func (l *Link) sendStates(ctx context.Context, states []state, lacking map[protocol.Tree]bool) (sent int, err error) {
	finder := l.Engine.Files().Finder()
	var roots, standins []protocol.Tree
	absent := 0
	for _, s := range states {
		if !lacking[s.tree] && !l.check {
			continue
		}
		switch _, by, err := finder.Find(ctx, s.root, s.tree); {
		case err != nil:
			return 0, err
		case by == s.tree:
			roots = append(roots, s.tree)
		case by != "":
			standins = append(standins, by)
		case lacking[s.tree]:
			absent++
		}
	}
	if absent > 0 {
		l.warn("%d file snapshots were not pushed to %s: they are not on this machine", absent, l.Name)
	}
	there, err := l.lackedThere(ctx, standins)
	if err != nil {
		return 0, err
	}
	for by := range there {
		lacking[by], roots = true, append(roots, by)
	}
	if len(roots) == 0 {
		return 0, nil
	}
	s := &sending{
		Link: l, lacking: lacking,
		entries: map[protocol.Tree][]gitobject.Entry{}, bad: map[protocol.Tree]error{}, done: map[protocol.Tree]bool{},
	}
	if s.never, err = finder.Redacted(ctx); err != nil {
		return 0, err
	}
	if s.from, err = finder.Objects(ctx); err != nil {
		return 0, err
	}
	defer func() { _ = s.from.Close() }()
	if err := s.survey(ctx, roots); err != nil {
		return 0, err
	}
	for _, root := range roots {
		err := s.put(ctx, root)
		var local *localError
		if errors.As(err, &local) {
			l.warn("files %s were not pushed to %s: %v", root, l.Name, local.err)
			continue
		}
		if err != nil {
			return s.sent, err
		}
	}
	return s.sent, s.flush(ctx)
}

// localError reports an object that is not available here.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// survey determines which objects below some directories the remote lacks. It sends one query per directory
// level.
func (s *sending) survey(ctx context.Context, level []protocol.Tree) error {
	asked := map[protocol.Tree]bool{}
	for len(level) > 0 {
		var ids, next []protocol.Tree
		var dirs []bool
		for _, id := range level {
			o, err := s.read(ctx, id, true)
			if err == nil {
				s.entries[id], err = gitobject.Entries(id, o.Content)
			}
			if err != nil {
				s.bad[id] = err
				continue
			}
			for _, e := range s.entries[id] {
				if s.never[e.ID] {
					s.bad[e.ID] = fmt.Errorf("they include files redacted here")
				}
				if !asked[e.ID] {
					asked[e.ID], ids, dirs = true, append(ids, e.ID), append(dirs, e.IsDir())
				}
			}
		}
		lacking, err := s.lackedThere(ctx, ids)
		if err != nil {
			return err
		}
		for i, id := range ids {
			if lacking[id] {
				s.lacking[id] = true
			}
			if dirs[i] && (lacking[id] || s.check) {
				next = append(next, id)
			}
		}
		level = next
	}
	return nil
}

// read reads a local object and verifies its hash, since anyone who can write to the user's repository could
// otherwise change what is shared with it.
func (s *sending) read(ctx context.Context, id protocol.Tree, dir bool) (remote.Object, error) {
	o := remote.Object{ID: id, Kind: gitobject.File}
	if dir {
		o.Kind = gitobject.Directory
	}
	var err error
	if o.Content, err = s.from.Object(ctx, id, dir); err == nil {
		err = o.Check()
	}
	return o, err
}

// put sends the objects that the remote lacks below a directory, and then the directory.
func (s *sending) put(ctx context.Context, id protocol.Tree) error {
	for _, e := range s.entries[id] {
		switch {
		case s.bad[e.ID] != nil:
			return &localError{s.bad[e.ID]}
		case e.IsDir() && (s.lacking[e.ID] || s.check) && !s.done[e.ID]:
			if err := s.put(ctx, e.ID); err != nil {
				return err
			}
			continue
		case !s.lacking[e.ID] || s.done[e.ID]:
			continue
		}
		if err := s.add(ctx, e.ID, false); err != nil {
			return err
		}
	}
	if s.bad[id] != nil {
		return &localError{s.bad[id]}
	}
	if s.done[id] || !s.lacking[id] {
		s.done[id] = true
		return nil
	}
	return s.add(ctx, id, true)
}

// add adds an object to the next batch.
func (s *sending) add(ctx context.Context, id protocol.Tree, dir bool) error {
	if s.done[id] {
		return nil
	}
	o, err := s.read(ctx, id, dir)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil {
		s.bad[id] = err
		return &localError{err}
	}
	if len(s.batch) == remote.MaxHashes || len(s.batch) > 0 && s.size+len(o.Content) > remote.MaxBatch {
		if err := s.flush(ctx); err != nil {
			return err
		}
	}
	s.batch, s.size, s.done[id] = append(s.batch, o), s.size+len(o.Content), true
	return nil
}

func (s *sending) flush(ctx context.Context) error {
	if len(s.batch) == 0 {
		return nil
	}
	err := s.Remote.PutObjects(ctx, s.batch)
	if err == nil {
		s.sent += len(s.batch)
	}
	s.batch, s.size = nil, 0
	return err
}

// fetching fetches the snapshots of threads. For each directory level, it reads the subdirectories, requests
// them and their files at once, and keeps them with the nodes. All objects are checked like those in a
// bundle, and the import is atomic.
type fetching struct {
	*pulling
	parts  *bundle.Parts
	keeper worktree.Keeper
	local  *snapshot.Objects      // our git directories, without imported threads
	never  map[protocol.Tree]bool // objects redacted here or, according to the remote, there
	// replaced maps snapshots to their replacements according to the remote; instead holds the replacements in
	// use.
	replaced, instead map[protocol.Tree]protocol.Tree
	asked             map[protocol.Tree]bool
	came              int
}

// fetchFiles fetches the snapshots that the threads need and that are missing here. It warns about those that
// the remote lacks. An object that doesn't match its hash is an error.
func (p *pulling) fetchFiles(ctx context.Context, f *bundle.File,
	parts *bundle.Parts) (came int, done func(), err error) {
	done = func() {}
	states, err := p.missingStates(ctx, f)
	if err != nil || len(states) == 0 {
		return 0, done, err
	}
	w := &fetching{pulling: p, parts: parts, keeper: p.Engine.Files(), asked: map[protocol.Tree]bool{}}
	if err := w.redactions(ctx); err != nil {
		return 0, done, err
	}
	wanted, nowhere, err := w.begin(ctx, states)
	if err != nil && ctx.Err() == nil {
		p.warn("the thread's files were not pulled from %s: %v", p.Name, err)
		return 0, done, nil
	}
	if err != nil || len(nowhere) == 0 {
		return 0, done, err
	}
	lacking, err := p.lackedThere(ctx, nowhere)
	if errors.Is(err, errors.ErrUnsupported) {
		p.warn("%s stores no files, so the thread's files are not on this machine", p.Name)
		return 0, done, nil
	}
	if err != nil {
		return 0, done, err
	}
	if wanted, err = w.elsewhere(ctx, wanted, lacking); err != nil {
		return 0, done, err
	}
	if n := len(lacking); n > 0 {
		p.warn("%d of %d file snapshots are missing on %s", n, len(states), p.Name)
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
	if errors.As(err, &missing) {
		p.warn("the thread's files were not pulled from %s: %v", p.Name, err)
		return 0, done, nil
	}
	if err != nil {
		return 0, done, err
	}
	base, err := snapshot.OpenObjects(w.keeper.Env, w.stores(wanted))
	if err != nil {
		return 0, done, err
	}
	local := w.local
	done = func() { _, _ = local.Close(), base.Close() }
	stand := w.standing(wanted)
	wanted = slices.DeleteFunc(wanted, func(tree protocol.Tree) bool {
		standsFor := func(s bundle.Instead) bool { return s.By == tree }
		return !parts.HasObject(tree) && !slices.ContainsFunc(stand, standsFor)
	})
	parts.SetTrees(wanted, stand, w.never, base)
	return w.came, done, nil
}

// missingStates returns the threads' snapshots back to and including the local head, or all if that head's
// snapshot is missing here.
func (p *pulling) missingStates(ctx context.Context, f *bundle.File) (all []state, err error) {
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
			if store, _, err := p.Engine.Files().Finder().Find(ctx, "", states[n-1].tree); err != nil || store == "" {
				if states, err = statesOf(ctx, f, at.Head, ""); err != nil {
					return nil, err
				}
			}
		}
		all = append(append(all, states...), unfinished(at.Facts)...)
	}
	return all, nil
}

// begin determines which snapshots are missing here. The git directories of imported threads receive all
// snapshots that they lack, so that any two can be compared.
func (w *fetching) begin(ctx context.Context, states []state) (wanted, nowhere []protocol.Tree, err error) {
	w.nearby(ctx)
	stores, err := w.keeper.Finder().Stores(ctx)
	if err != nil {
		return nil, nil, err
	}
	wanted = w.standins(ctx, stores, treesOf(states))
	slices.Sort(wanted)
	wanted = slices.Compact(wanted)
	nowhere = wanted
	for _, store := range stores {
		if nowhere, err = snapshot.Missing(ctx, w.keeper.Env, store, nowhere); err != nil {
			return nil, nil, err
		}
	}
	return wanted, nowhere, nil
}

// nearby makes the objects of the repository around the current directory available, so that they need not be
// fetched.
func (w *fetching) nearby(ctx context.Context) {
	if w.Near == "" {
		return
	}
	if repo, err := snapshot.Find(ctx, w.keeper.Env, w.Near); err == nil {
		_ = repo.Seed(ctx, repo.Store(w.keeper.Dirs.Git()), false) // it only saves time
	}
}

// open opens the local objects.
func (w *fetching) open(ctx context.Context) (err error) {
	all, err := w.keeper.Finder().Stores(ctx)
	if err != nil {
		return err
	}
	own := slices.DeleteFunc(slices.Clone(all), func(store string) bool {
		return store == w.keeper.Imported("sha1") || store == w.keeper.Imported("sha256")
	})
	w.local, err = snapshot.OpenObjects(w.keeper.Env, own)
	return err
}

// stores returns our git directories for imported threads that match the trees' hash functions.
func (w *fetching) stores(trees []protocol.Tree) (dirs []string) {
	for _, tree := range trees {
		if store := w.keeper.Imported(tree.Function()); !slices.Contains(dirs, store) && snapshot.IsStore(store) {
			dirs = append(dirs, store)
		}
	}
	return dirs
}

// levels fetches some directories and everything below them.
func (w *fetching) levels(ctx context.Context, roots []protocol.Tree) error {
	var level []gitobject.Entry
	for _, root := range roots {
		level = append(level, gitobject.Entry{ID: root, Mode: gitobject.ModeDir})
	}
	for depth := 0; len(level) > 0; depth++ {
		if depth > gitobject.MaxLevels {
			return remote.Faultf("directories are nested more than %d levels deep", gitobject.MaxLevels)
		}
		var err error
		if level, err = w.level(ctx, level); err != nil {
			return err
		}
	}
	return nil
}

// level fetches some objects, and returns the entries of those that are directories.
func (w *fetching) level(ctx context.Context, level []gitobject.Entry) (next []gitobject.Entry, err error) {
	wanted, err := w.unkept(ctx, level)
	if err != nil {
		return nil, err
	}
	take := func(o remote.Object) error {
		if err := w.parts.AddObject(o.ID, o.Kind == gitobject.Directory, o.Content); err != nil {
			return err
		}
		if w.size += int64(len(o.Content)); w.size > maxPull {
			return remote.Faultf("sent more than %d bytes", int64(maxPull))
		}
		if o.Kind != gitobject.Directory {
			return nil
		}
		entries, err := gitobject.Entries(o.ID, o.Content)
		if err != nil {
			return remote.Faultf("%v", err)
		}
		for _, e := range entries {
			if !w.asked[e.ID] && !w.never[e.ID] {
				w.asked[e.ID], next = true, append(next, e)
			}
		}
		return nil
	}
	var ask []protocol.Tree
	dirs := map[protocol.Tree]bool{}
	for _, e := range wanted {
		o := remote.Object{ID: e.ID, Kind: gitobject.File}
		if dirs[e.ID] = e.IsDir(); e.IsDir() {
			o.Kind = gitobject.Directory
		}
		if o.Content, err = w.local.Object(ctx, e.ID, e.IsDir()); err != nil || o.Check() != nil {
			ask = append(ask, e.ID)
			continue
		}
		if err := take(o); err != nil {
			return nil, err
		}
	}
	for len(ask) > 0 {
		part, n := ask[:min(len(ask), remote.MaxHashes)], 0
		gone := protocol.Tree("")
		for o, err := range w.Remote.GetObjects(ctx, part) {
			if missing := (*remote.MissingError)(nil); errors.As(err, &missing) && n < len(part) && !dirs[part[n]] {
				if gone = part[n]; w.wasRedacted(ctx, gone) {
					break
				}
			}
			if err != nil {
				return nil, err
			}
			if n == len(part) || o.ID != part[n] || dirs[o.ID] != (o.Kind == gitobject.Directory) {
				return nil, remote.Faultf("sent object %q, which was not requested", o.ID)
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
		if n < len(part) && part[n] == gone {
			n++
		} else if n < len(part) {
			return nil, &remote.MissingError{Hash: string(part[n])}
		}
		ask = ask[n:]
	}
	return next, ctx.Err()
}

// wasRedacted reports whether the remote has redacted a file that it didn't send: it doesn't list the file as
// missing either. The redaction may belong to another thread.
func (w *fetching) wasRedacted(ctx context.Context, id protocol.Tree) bool {
	lacking, err := w.lackedThere(ctx, []protocol.Tree{id})
	if err != nil || lacking[id] {
		return false
	}
	w.never[id] = true
	return true
}

// unkept returns the objects that imported threads have not stored yet.
func (w *fetching) unkept(ctx context.Context, level []gitobject.Entry) (rest []gitobject.Entry, err error) {
	ids := map[string][]protocol.Tree{}
	for _, e := range level {
		ids[e.ID.Function()] = append(ids[e.ID.Function()], e.ID)
	}
	lacking := map[protocol.Tree]bool{}
	for function, some := range ids {
		if some, err = snapshot.Missing(ctx, w.keeper.Env, w.keeper.Imported(function), some); err != nil {
			return nil, err
		}
		for _, id := range some {
			lacking[id] = true
		}
	}
	return slices.DeleteFunc(level, func(e gitobject.Entry) bool { return !lacking[e.ID] }), nil
}

// redactions determines which contents were redacted, here or according to the remote.
func (w *fetching) redactions(ctx context.Context) (err error) {
	if w.never, err = w.keeper.Finder().Redacted(ctx); err != nil {
		return err
	}
	w.replaced, w.instead = map[protocol.Tree]protocol.Tree{}, map[protocol.Tree]protocol.Tree{}
	for id, at := range w.at {
		redacted := sensibleRedacted(at.Facts.Redacted).And(w.facts[id].Redacted)
		if redacted == nil {
			continue
		}
		for tree, by := range redacted.Instead {
			w.replaced[tree] = by
		}
		for _, content := range redacted.Contents {
			w.never[content] = true
		}
	}
	return nil
}

// standins replaces redacted snapshots by their local substitutes.
func (w *fetching) standins(ctx context.Context, stores []string, wanted []protocol.Tree) []protocol.Tree {
	for i, tree := range wanted {
		for _, store := range stores {
			if by := snapshot.Substitute(ctx, w.keeper.Env, store, tree); by != tree {
				w.instead[tree], wanted[i] = by, by
			}
		}
	}
	return wanted
}

// elsewhere replaces snapshots that exist neither here nor at the remote by the substitutes that the remote
// reports.
func (w *fetching) elsewhere(ctx context.Context, wanted []protocol.Tree,
	lacking map[protocol.Tree]bool) ([]protocol.Tree, error) {
	var standins []protocol.Tree
	for tree := range lacking {
		if by := w.replaced[tree]; by != "" {
			standins = append(standins, by)
		}
	}
	gone, err := w.lackedThere(ctx, standins)
	if err != nil {
		return nil, err
	}
	for tree := range lacking {
		if by := w.replaced[tree]; by != "" && !gone[by] {
			w.instead[tree], wanted = by, append(wanted, by)
			delete(lacking, tree)
		}
	}
	wanted = slices.DeleteFunc(wanted, func(tree protocol.Tree) bool { return lacking[tree] || w.instead[tree] != "" })
	slices.Sort(wanted)
	return slices.Compact(wanted), nil
}

// standing returns the substitutes that were fetched, with the snapshots they replace.
func (w *fetching) standing(came []protocol.Tree) (stand []bundle.Instead) {
	for tree, by := range w.instead {
		if slices.Contains(came, by) {
			stand = append(stand, bundle.Instead{Tree: tree, By: by})
		}
	}
	sorting.Func(stand, func(a, b bundle.Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	return stand
}

// sensibleRedacted removes invalid claims from a remote's list of redactions.
func sensibleRedacted(r *heads.Redacted) *heads.Redacted {
	if r == nil {
		return nil
	}
	is := &heads.Redacted{Contents: slices.DeleteFunc(slices.Clone(r.Contents),
		func(id protocol.Tree) bool { return !id.Valid() })}
	for _, name := range r.Paths {
		if fs.ValidPath(name) && len(name) <= maxPath {
			is.Paths = append(is.Paths, name)
		}
	}
	for tree, by := range r.Instead {
		if tree.Valid() && by.Valid() && tree.Function() == by.Function() && r.Instead[by] == "" {
			is = is.And(&heads.Redacted{Instead: map[protocol.Tree]protocol.Tree{tree: by}})
		}
	}
	return is.And(&heads.Redacted{}) // limits their number
}

const maxPath = 4096
