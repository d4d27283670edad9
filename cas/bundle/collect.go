package bundle

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
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
	if len(ids) == 0 {
		if err != nil {
			return Manifest{}, err
		}
		ids = slices.Collect(maps.Keys(standings))
	} else if facts, _ := x.AllFacts(ctx); facts != nil { // what cannot be read is no child
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
