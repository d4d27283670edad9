package remotes

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/step/files"
)

// The files of threads travel with their nodes, as git objects. Each object goes after those
// that it names: if a push is killed in between, the next one sends the rest.

// state is one of the files, and the work tree that it was made in.
type state struct {
	root string
	tree protocol.Tree
}

// statesOf are the states of the files around the steps of a chain, each once and the
// newest first, back to that of a step of it and with that; until "": all.
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
	if w := chain.Start.Workspace; w != nil && !seen[w.Tree] { // those that a child begins with
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

// sendFiles sends the files around the steps of a chain that the remote lacks, and those that
// the thread began with, as said tells the remote; there is where the thread stands at the
// remote. Files that are not available here, or were redacted, do not hold up the steps: a
// warning says so.
func (l *Link) sendFiles(ctx context.Context, head, there cas.Hash, said heads.Facts) (sent int, err error) {
	if l.check {
		there = ""
	}
	states, err := statesOf(ctx, l.Store, head, there)
	states = append(states, begun(said)...)
	if err != nil || len(states) == 0 {
		return 0, err
	}
	lacking, err := l.lackedThere(ctx, treesOf(states))
	if errors.Is(err, errors.ErrUnsupported) {
		l.warn("%s keeps no files: those of the thread stay here", l.Name)
		return 0, nil
	}
	if oldest := states[len(states)-1].tree; err == nil && there != "" && lacking[oldest] { // nor what was before
		if states, err = statesOf(ctx, l.Store, head, ""); err == nil {
			states = append(states, begun(said)...)
			lacking, err = l.lackedThere(ctx, treesOf(states))
		}
	}
	if err != nil || len(lacking) == 0 && !l.check {
		return 0, err
	}
	return l.sendStates(ctx, states, lacking)
}

// lackedThere are those of some objects that the remote lacks.
func (l *Link) lackedThere(ctx context.Context, ids []protocol.Tree) (map[protocol.Tree]bool, error) {
	lacking := map[protocol.Tree]bool{}
	for part := range slices.Chunk(ids, remote.MaxHashes) {
		some, err := l.Remote.MissingObjects(ctx, part)
		if err == nil && l.check {
			var bad []protocol.Tree
			bad, err = notReturned(without(part, some), func(rest []protocol.Tree) iter.Seq2[remote.Object, error] { return l.Remote.GetObjects(ctx, rest) })
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

// sending are objects on their way to the remote.
type sending struct {
	*Link
	from    *files.Objects
	lacking map[protocol.Tree]bool // there
	never   map[protocol.Tree]bool // what was taken out here
	entries map[protocol.Tree][]bundle.Entry
	bad     map[protocol.Tree]error // what cannot be sent, and why
	done    map[protocol.Tree]bool
	batch   []remote.Object
	size    int
	sent    int
}

func (l *Link) sendStates(ctx context.Context, states []state, lacking map[protocol.Tree]bool) (sent int, err error) {
	sources := l.Engine.Files().Sources()
	var roots, standins []protocol.Tree
	absent := 0
	for _, s := range states {
		if !lacking[s.tree] && !l.check {
			continue
		}
		switch by, err := sources.Find(ctx, s.root, s.tree); {
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
		l.warn("%d states of the files do not go to %s: they are not on this machine", absent, l.Name)
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
		entries: map[protocol.Tree][]bundle.Entry{}, bad: map[protocol.Tree]error{}, done: map[protocol.Tree]bool{},
	}
	if s.never, err = sources.Redacted(ctx); err != nil {
		return 0, err
	}
	if s.from, err = sources.Open(); err != nil {
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
			l.warn("the files %s do not go to %s: %v", root, l.Name, local.err)
			continue
		}
		if err != nil {
			return s.sent, err
		}
	}
	return s.sent, s.flush(ctx)
}

// localError is of an object that is not available here.
type localError struct{ err error }

func (e *localError) Error() string { return e.err.Error() }

// survey finds out what the remote lacks of some directories. It asks about all directories of
// one level at once.
func (s *sending) survey(ctx context.Context, level []protocol.Tree) error {
	asked := map[protocol.Tree]bool{}
	for len(level) > 0 {
		var ids, next []protocol.Tree
		var dirs []bool
		for _, id := range level {
			o, err := s.read(ctx, id, true)
			if err == nil {
				s.entries[id], err = bundle.Entries(id, o.Content)
			}
			if err != nil {
				s.bad[id] = err
				continue
			}
			for _, e := range s.entries[id] {
				if s.never[e.ID] {
					s.bad[e.ID] = fmt.Errorf("what was taken out here is among them")
				}
				if !asked[e.ID] {
					asked[e.ID], ids, dirs = true, append(ids, e.ID), append(dirs, e.Dir)
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

// read reads an object that is here, and checks it against its name: whoever can write to the
// user's repository can change what is shared with it.
func (s *sending) read(ctx context.Context, id protocol.Tree, dir bool) (remote.Object, error) {
	o := remote.Object{ID: id, Kind: remote.File}
	if dir {
		o.Kind = remote.Directory
	}
	var err error
	if o.Content, err = s.from.Object(ctx, id, dir); err == nil {
		err = o.Check()
	}
	return o, err
}

// put sends what the remote lacks of a directory, and then the directory.
func (s *sending) put(ctx context.Context, id protocol.Tree) error {
	for _, e := range s.entries[id] {
		switch {
		case s.bad[e.ID] != nil:
			return &localError{s.bad[e.ID]}
		case e.Dir && (s.lacking[e.ID] || s.check) && !s.done[e.ID]:
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

// add puts an object into the batch that goes next.
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
