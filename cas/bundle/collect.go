package bundle

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Source is a store to export from.
type Source interface {
	cas.Reader
	// Seal is the seal that is kept for a node, none if there is none.
	Seal(h cas.Hash) (cas.Seal, error)
}

// Collect makes the manifest of threads: how they stand now, the names in the
// registry of the workflows that they run, and the seals that their heads have.
// No ids: all threads. Errors: [heads.ErrNoThread]; those of [thread.Open].
func Collect(ctx context.Context, s Source, x *fileheads.Heads, ids []string) (Manifest, error) {
	standings, err := heads.Standings(ctx, x)
	facts, _ := x.AllFacts(ctx) // what cannot be read is no child, and has no title
	if len(ids) == 0 {
		if err != nil {
			return Manifest{}, err
		}
		ids = slices.Collect(maps.Keys(standings))
	} else if facts != nil {
		family := heads.Family(facts, ids)
		for id := range family {
			if _, known := standings[id]; !known && !slices.Contains(ids, id) {
				delete(family, id) // removed by itself
			}
		}
		ids = slices.Collect(maps.Keys(family))
	}
	m := Manifest{Hash: s.Algorithm()}
	workflows := map[cas.Hash]bool{}
	for _, id := range slices.Compact(slices.Sorted(slices.Values(ids))) {
		at, known := standings[id]
		switch {
		case !known && err != nil:
			return m, err // one of the lines that cannot be read may be its
		case !known:
			return m, fmt.Errorf("%w: %s", heads.ErrNoThread, id)
		}
		t, err := threadOf(ctx, s, id, at, workflows)
		if err != nil {
			return m, fmt.Errorf("thread %s: %w", id, err)
		}
		if title := facts[id].Title; title != nil {
			t.Title = *title
		}
		m.Threads = append(m.Threads, t)
	}
	names, err := x.Workflows(ctx)
	if err != nil {
		return m, err
	}
	for _, n := range names {
		if workflows[n.Hash] && n.Problem == "" {
			m.Workflows = append(m.Workflows, Workflow{Name: n.Name, Hash: n.Hash})
		}
	}
	return m, nil
}

// threadOf is the entry of one thread; it notes the workflow that it runs.
func threadOf(ctx context.Context, s Source, id string, at heads.Standing, workflows map[cas.Hash]bool) (Thread, error) {
	chain, err := thread.Open(ctx, s, at.Head)
	if err != nil {
		return Thread{}, err
	}
	workflows[chain.Start.Workflow] = true
	t := Thread{Thread: id, Head: at.Head}
	if at.End != nil {
		t.Status, t.CompletedAt = at.End.Status, at.End.CompletedAt
		if at.End.Workflow.Valid() {
			t.Workflow = at.End.Workflow
			workflows[t.Workflow] = true
		}
	}
	kept, err := s.Seal(at.Head)
	t.Seal = kept.String()
	return t, err
}

// AddTrees adds to a manifest the states of files that its threads name, as find finds
// them: the state itself, one that stands for it, or none, ""; missing is how many those are.
func (m *Manifest) AddTrees(ctx context.Context, r cas.Reader, find func(root string, tree protocol.Tree) (protocol.Tree, error)) (missing int, err error) {
	known, there := map[protocol.Tree]bool{}, map[protocol.Tree]bool{}
	for _, t := range m.Threads {
		err := states(ctx, r, t.Head, func(root string, tree protocol.Tree) error {
			if known[tree] {
				return nil
			}
			by, err := find(root, tree)
			if known[tree] = true; by == "" {
				missing++
				return err
			}
			there[by] = true
			if by != tree {
				m.Instead = append(m.Instead, Instead{Tree: tree, By: by})
			}
			return err
		})
		if err != nil {
			return missing, fmt.Errorf("thread %s: %w", t.Thread, err)
		}
	}
	m.Trees = slices.Sorted(maps.Keys(there))
	// One that another thread has whole goes without: nothing stands for it.
	m.Instead = slices.DeleteFunc(m.Instead, func(s Instead) bool { return there[s.Tree] })
	slices.SortFunc(m.Instead, func(a, b Instead) int { return cmp.Compare(a.Tree, b.Tree) })
	return missing, nil
}

// states calls found for the states of the files around each step of a chain, the
// newest first.
func states(ctx context.Context, r cas.Reader, head cas.Hash, found func(root string, tree protocol.Tree) error) error {
	chain, err := thread.Open(ctx, r, head)
	if err != nil {
		return err
	}
	for step, err := range chain.Steps(ctx) {
		if err != nil {
			return err
		}
		if step.Files == nil {
			continue
		}
		for _, tree := range []protocol.Tree{step.Files.Tree, step.Files.Before} {
			if tree == "" {
				continue
			}
			if err := found(step.Root, tree); err != nil {
				return err
			}
		}
	}
	return nil
}

// CollectNodes makes the manifest of nodes that are exported for their own sake.
func CollectNodes(s Source, hashes []cas.Hash) (Manifest, error) {
	m := Manifest{Hash: s.Algorithm()}
	for _, h := range slices.Compact(slices.Sorted(slices.Values(hashes))) {
		kept, err := s.Seal(h)
		if err != nil {
			return m, err
		}
		m.Roots = append(m.Roots, Root{Hash: h, Seal: kept.String()})
	}
	return m, nil
}
