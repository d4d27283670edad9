// Package du measures a store: how many nodes and bytes of which type, and
// what sharing saves.
package du

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
)

// Type is what the nodes of one type amount to.
type Type struct {
	Hash  cas.Hash `json:"hash"`
	Title string   `json:"title,omitempty"` // of its schema
	Nodes int      `json:"nodes"`
	Bytes int64    `json:"bytes"`
}

// Report says what is in a store. Bytes are those of node files, without what
// the file system adds.
type Report struct {
	Nodes int    `json:"nodes"`
	Bytes int64  `json:"bytes"`
	Types []Type `json:"types"` // the one with most bytes first
	// Threads are those of the index, active and ended. Each stored alone, with
	// all that it leads to, they would take Alone bytes; together they take
	// Shared.
	Threads int   `json:"threads"`
	Alone   int64 `json:"aloneBytes"`
	Shared  int64 `json:"sharedBytes"`
	// Tombstones is how many of the nodes were redacted, Seals how many are sealed.
	Tombstones int `json:"tombstones"`
	Seals      int `json:"seals"`
	// Unreadable is how many nodes could not be counted: see fsck.
	Unreadable int `json:"unreadable,omitempty"`
}

// Measure reads every node once. x may be nil: then there are no threads.
func Measure(ctx context.Context, s *fsstore.Store, x *fileheads.Heads) (Report, error) {
	m := meter{store: s, types: map[cas.Hash]*Type{}}
	set, err := census.List(ctx, s, func(error) { m.report.Unreadable++ })
	if err != nil {
		return m.report, err
	}
	m.graph, m.sizes = census.NewGraph(set), make([]int64, set.Len())
	inspector := func() *cas.Inspector { return cas.NewInspector(s) }
	if err := census.EachNode(ctx, s, inspector, set, m.look, m.take); err != nil {
		return m.report, err
	}
	for _, err := range s.Seals(ctx) {
		if err != nil {
			return m.report, fmt.Errorf("seals: %w", err)
		}
		m.report.Seals++
	}
	m.title(ctx)
	if x == nil {
		return m.report, nil
	}
	return m.report, m.sharing(ctx, x)
}

type meter struct {
	store  *fsstore.Store
	graph  *census.Graph
	sizes  []int64
	types  map[cas.Hash]*Type
	report Report
}

// seen is what is known of one node.
type seen struct {
	id   census.ID
	typ  cas.Hash
	refs []cas.Hash
	size int64
	err  error
	// redacted: it is a tombstone.
	redacted bool
}

func (m *meter) look(inspector *cas.Inspector, id census.ID, n cas.Node, err error) seen {
	out := seen{id: id, typ: n.Type, err: err}
	if redacted, ok := cas.AsRedacted(err); ok {
		out.typ, out.redacted = redacted.Tombstone.Type, true
		out.size, _, out.err = m.store.Stat(redacted.Tombstone.Hash)
		return out
	}
	if err != nil {
		return out
	}
	// A type that is missing leaves refs out, which fsck reports.
	out.refs, _ = inspector.Refs(context.Background(), n)
	out.size, _, out.err = m.store.Stat(n.Hash)
	return out
}

func (m *meter) take(nodes []seen) {
	for _, n := range nodes {
		if errors.Is(n.err, cas.ErrNotFound) || errors.Is(n.err, fs.ErrNotExist) {
			continue // collected since
		}
		if n.err != nil {
			m.report.Unreadable++
			continue
		}
		m.report.Nodes++
		m.report.Bytes += n.size
		m.sizes[n.id] = n.size
		t := m.types[n.typ]
		if t == nil {
			t = &Type{Hash: n.typ}
			m.types[n.typ] = t
		}
		t.Nodes++
		t.Bytes += n.size
		if n.redacted {
			m.report.Tombstones++
			continue // it leads nowhere
		}
		m.graph.Add(n.id, append(n.refs, n.typ)...)
	}
}

// title names the types by their schemas and sorts them.
func (m *meter) title(ctx context.Context) {
	m.report.Types = []Type{}
	for h, t := range m.types {
		if schema, err := cas.Schema(ctx, m.store, h); err == nil {
			if object, ok := schema.(map[string]any); ok {
				t.Title, _ = object["title"].(string)
			}
			if h == m.store.Kinds().MetaHash() {
				t.Title = "schema"
			}
		}
		m.report.Types = append(m.report.Types, *t)
	}
	slices.SortFunc(m.report.Types, func(a, b Type) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Hash, b.Hash))
	})
}

// sharing follows each thread to the end, in memory.
func (m *meter) sharing(ctx context.Context, x *fileheads.Heads) error {
	heads := map[string]protocol.Hash{}
	for h, err := range x.Heads(ctx) {
		if err != nil {
			return fmt.Errorf("threads: %w", err)
		}
		heads[h.Thread] = h.Hash
	}
	for e, err := range x.History(ctx) {
		if err != nil {
			return fmt.Errorf("threads: %w", err)
		}
		heads[e.Thread] = e.Head
	}
	all := make([]census.ID, 0, len(heads))
	for _, h := range heads {
		all = append(all, m.graph.Node(h))
	}
	w := census.NewWalker(m.graph.Down())
	m.report.Threads = len(heads)
	for _, head := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		m.report.Alone += m.reach(w, head)
	}
	m.report.Shared = m.reach(w, all...)
	return nil
}

// reach is the size of all that some nodes lead to.
func (m *meter) reach(w *census.Walker, from ...census.ID) (bytes int64) {
	w.Reach(from, func(id census.ID) bool {
		if int(id) < len(m.sizes) { // otherwise it is missing
			bytes += m.sizes[id]
		}
		return true
	})
	return bytes
}
