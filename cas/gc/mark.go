package gc

import (
	"context"
	"errors"
	"iter"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/internal/census"
)

// marks remembers what is needed. A mark is never taken back.
type marks struct {
	store     *fsstore.Store
	inspector *cas.Inspector
	nodes     census.Set
	needed    []bool            // by ID
	removed   []bool            // by ID
	others    map[cas.Hash]bool // needed, but not in nodes
	damage    DamagedError
}

func newMarks(s *fsstore.Store, nodes census.Set) *marks {
	return &marks{
		store: s, inspector: cas.NewInspector(s), nodes: nodes, needed: make([]bool, nodes.Len()),
		removed: make([]bool, nodes.Len()),
		others:  map[cas.Hash]bool{},
	}
}

// set marks a node and reports whether it was not marked before.
func (m *marks) set(h cas.Hash) bool {
	if id, ok := m.nodes.ID(h); ok {
		old := m.needed[id]
		m.needed[id] = true
		return !old
	}
	old := m.others[h]
	m.others[h] = true
	return !old
}

// marked reports whether a node is needed.
func (m *marks) marked(h cas.Hash) bool {
	if id, ok := m.nodes.ID(h); ok {
		return m.needed[id] && !m.removed[id]
	}
	return m.others[h]
}

// isGarbage reports whether a node was listed and nothing needs it.
func (m *marks) isGarbage(h cas.Hash) bool {
	id, ok := m.nodes.ID(h)
	return ok && !m.needed[id]
}

// forget says that a node has been removed. It counts as marked from now on, so
// that nobody removes it again.
func (m *marks) forget(h cas.Hash) {
	m.set(h)
	if id, ok := m.nodes.ID(h); ok {
		m.removed[id] = true
	}
}

// garbage is how many nodes nothing has marked so far.
func (m *marks) garbage() int {
	n := 0
	for _, needed := range m.needed {
		if !needed {
			n++
		}
	}
	return n
}

// unmarked yields the nodes that nothing has marked so far.
func (m *marks) unmarked() iter.Seq[census.ID] {
	return func(yield func(census.ID) bool) {
		for id, needed := range m.needed {
			if !needed && !yield(census.ID(id)) {
				return
			}
		}
	}
}

// from marks a node and all that it leads to. What is missing or damaged there
// counts as damage if the root is known to be needed. The error is that of ctx,
// or of a disk that cannot be read.
func (m *marks) from(ctx context.Context, root cas.Hash, known bool) error {
	if !m.set(root) {
		return nil
	}
	for stack := []cas.Hash{root}; len(stack) > 0; {
		if err := ctx.Err(); err != nil {
			return err
		}
		h := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		refs, err := m.refs(ctx, h)
		if err != nil {
			if err := m.damaged(err, known); err != nil {
				return err
			}
		}
		for _, r := range refs {
			if m.set(r) {
				stack = append(stack, r)
			}
		}
	}
	return nil
}

// refs are all that a node needs, its type included.
func (m *marks) refs(ctx context.Context, h cas.Hash) ([]cas.Hash, error) {
	n, err := m.store.Get(ctx, h)
	if _, redacted := cas.AsRedacted(err); redacted {
		return nil, nil // a tombstone leads nowhere
	}
	if err != nil {
		return nil, err
	}
	refs, err := m.inspector.Refs(ctx, n)
	return append(refs, n.Type), err
}

// damaged counts damage; other errors are returned. Below a root that is only
// young, or only a word that looks like a hash, nothing is promised.
func (m *marks) damaged(err error, known bool) error {
	var corrupt *cas.CorruptError
	if !errors.Is(err, cas.ErrNotFound) && !errors.As(err, &corrupt) {
		return err
	}
	if !known {
		return nil
	}
	if m.damage.Count++; m.damage.First == nil {
		m.damage.First = err
	}
	return nil
}

// foundation marks the schemas that every store begins with.
func (m *marks) foundation(ctx context.Context) error {
	for _, n := range m.store.Kinds().Foundation() {
		if err := m.from(ctx, n.Hash, false); err != nil {
			return err
		}
	}
	return nil
}
