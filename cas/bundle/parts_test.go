package bundle_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
)

// parts returns the nodes that a head references, except those that leave excludes.
func (w *world) parts(head cas.Hash, leave func(cas.Hash) bool) (all []cas.Node) {
	w.t.Helper()
	err := graph.BottomUp(context.Background(), w.store, []cas.Hash{head}, graph.BottomUpOptions{}, func(v graph.Visited) error {
		if !leave(v.Node.Hash) {
			all = append(all, v.Node)
		}
		return nil
	})
	require.NoError(w.t, err)
	return all
}

// receive imports nodes of a thread into a home, as from a remote.
func (w *world) receive(thread bundle.Thread, nodes []cas.Node, o bundle.ImportOptions, whole ...cas.Hash) (bundle.Imported, error) {
	w.t.Helper()
	ctx := context.Background()
	spool, err := os.CreateTemp(w.t.TempDir(), "")
	require.NoError(w.t, err)
	defer spool.Close()
	p := bundle.NewParts(spool, w.store)
	for _, n := range nodes {
		if err := p.Add(n.Hash, cas.MarshalFile(n)); err != nil {
			return bundle.Imported{}, err
		}
	}
	f, err := p.File(bundle.Manifest{Threads: []bundle.Thread{thread}}, whole...)
	require.NoError(w.t, err)
	o.Now = clock
	return f.Import(ctx, bundle.Target{Store: w.store, Index: w.index}, o)
}

func (w *world) lacks(h cas.Hash) bool {
	there, err := w.store.Has(context.Background(), h)
	require.NoError(w.t, err)
	return !there
}

// Missing nodes suffice, in any order, and unneeded ones are ignored.
func TestPartsOfLocalThread(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	at := to.head(idA)
	head := from.step(idA, map[string]any{"n": 2})
	stray := from.append(head, map[string]any{"n": 3})
	nodes := from.parts(stray, func(h cas.Hash) bool { return !to.lacks(h) })
	slices.Reverse(nodes)
	done, err := to.receive(bundle.Thread{Thread: idA, Head: head}, nodes, bundle.ImportOptions{}, at)
	require.Equal(t, bundle.Advanced, one(t, done, err).Result)
	require.Equal(t, head, to.head(idA))
	require.True(t, to.lacks(stray), "nobody needs it")

	for _, n := range from.parts(head, func(cas.Hash) bool { return false }) {
		require.False(t, to.lacks(n.Hash))
	}
}

// A head moves only to a complete chain.
func TestPartsThatAreNotWhole(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	at := to.head(idA)
	middle := from.step(idA, map[string]any{"n": 2})
	head := from.step(idA, map[string]any{"n": 3})
	for _, n := range from.parts(head, func(h cas.Hash) bool { return !to.lacks(h) }) {
		nodes := from.parts(head, func(h cas.Hash) bool { return h == n.Hash || !to.lacks(h) })
		_, err := to.receive(bundle.Thread{Thread: idA, Head: head}, nodes, bundle.ImportOptions{}, at)
		require.ErrorIs(t, err, cas.ErrNotFound, "without %s", n.Hash)
		require.Equal(t, at, to.head(idA))
		require.True(t, to.lacks(middle), "nothing is written on a fault")
	}
	nodes := from.parts(head, func(cas.Hash) bool { return false })
	nodes[0].Payload = bytes.Clone(nodes[0].Payload)
	nodes[0].Payload[len(nodes[0].Payload)-1] ^= 1
	_, err := to.receive(bundle.Thread{Thread: idA, Head: head}, nodes, bundle.ImportOptions{}, at)
	var damaged *cas.CorruptError
	require.ErrorAs(t, err, &damaged)
}

// Garbage that happens to be here doesn't count as a complete chain.
func TestPartsOnGarbage(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	at := to.head(idA)
	middle := from.step(idA, map[string]any{"n": 2})
	head := from.step(idA, map[string]any{"n": 3})
	n, err := from.store.Get(context.Background(), middle)
	require.NoError(t, err)
	require.NoError(t, to.store.Put(context.Background(), n)) // but not what it references
	nodes := from.parts(head, func(h cas.Hash) bool { return h == middle || !to.lacks(h) })
	below := from.parts(middle, func(h cas.Hash) bool { return !to.lacks(h) })
	nodes = slices.DeleteFunc(nodes, func(n cas.Node) bool {
		return slices.ContainsFunc(below, func(b cas.Node) bool { return b.Hash == n.Hash })
	})
	_, err = to.receive(bundle.Thread{Thread: idA, Head: head}, nodes, bundle.ImportOptions{}, at)
	require.ErrorIs(t, err, cas.ErrNotFound)
	require.Equal(t, at, to.head(idA))
}

// The side that hasn't moved since both had the same head is behind the other, even if the other's last step
// was replaced.
func TestReplacedSinceSeen(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	at := to.head(idA)
	chain, err := thread.Open(context.Background(), from.store, at)
	require.NoError(t, err)
	other := from.append(chain.StartHash, map[string]any{"n": 9})
	require.NoError(t, from.index.Move(context.Background(), idA, at, other))
	nodes := from.parts(other, func(h cas.Hash) bool { return !to.lacks(h) })
	theirs := bundle.Thread{Thread: idA, Head: other}

	_, err = to.receive(theirs, nodes, bundle.ImportOptions{}, at)
	var conflict *bundle.ConflictError
	require.ErrorAs(t, err, &conflict)

	title := "told"
	done, err := to.receive(theirs, nodes, bundle.ImportOptions{
		Seen:  func(string) cas.Hash { return at },
		Facts: func(string) heads.Facts { return heads.Facts{Title: &title} },
	}, at)
	got := one(t, done, err)
	require.Equal(t, bundle.Replaced, got.Result)
	require.Equal(t, at, got.Was)
	require.Equal(t, other, to.head(idA))
	facts, err := to.index.Facts(context.Background(), idA)
	require.NoError(t, err)
	require.Equal(t, title, *facts.Title)

	// If this side moves on, the other side's known state is behind.
	here := to.step(idA, map[string]any{"n": 4})
	done, err = to.receive(theirs, nil, bundle.ImportOptions{Seen: func(string) cas.Hash { return other }}, here)
	require.Equal(t, bundle.Ahead, one(t, done, err).Result)
}
