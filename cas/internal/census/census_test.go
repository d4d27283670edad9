package census_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
)

// filled returns a store with some texts.
func filled(t *testing.T, n int) (cas.Store, []cas.Hash) {
	s := castest.NewStore(t, cas.XXH3)
	b := cas.NewBatch(s, time.Now)
	var texts []cas.Hash
	for i := range n {
		h, err := b.Add(t.Context(), protocol.Text(fmt.Sprint("text ", i)))
		require.NoError(t, err)
		texts = append(texts, h)
	}
	require.NoError(t, b.Put(t.Context()))
	return s, texts
}

func TestListKnowsEveryNode(t *testing.T) {
	t.Parallel()
	s, texts := filled(t, 300)
	set, err := census.List(t.Context(), s, func(err error) { t.Error(err) })
	require.NoError(t, err)
	seen := map[cas.Hash]bool{}
	for id := range set.Len() {
		h := set.Hash(census.ID(id))
		back, ok := set.ID(h)
		require.True(t, ok)
		require.Equal(t, census.ID(id), back)
		seen[h] = true
	}
	for _, h := range texts {
		require.True(t, seen[h])
	}
	_, ok := set.ID("0000000000000")
	require.False(t, ok)
}

// disordered lists nodes in the wrong order, with an error among them.
type disordered struct {
	cas.Store
	hashes []cas.Hash
}

func (d disordered) All(context.Context, string) iter.Seq2[cas.Hash, error] {
	return func(yield func(cas.Hash, error) bool) {
		for i, h := range d.hashes {
			if i == 1 && !yield("", errors.New("a directory cannot be read")) || !yield(h, nil) {
				return
			}
		}
	}
}

func TestListContinuesAfterFault(t *testing.T) {
	t.Parallel()
	d := disordered{hashes: []cas.Hash{"F000000000000", "0000000000001", "7000000000000"}}
	faults := 0
	set, err := census.List(t.Context(), d, func(error) { faults++ })
	require.NoError(t, err)
	require.Equal(t, 1, faults)
	require.Equal(t, 3, set.Len())
	require.Equal(t, cas.Hash("0000000000001"), set.Hash(0), "in the order of the hashes")
}

func TestGraph(t *testing.T) {
	t.Parallel()
	const a, b, c, gone cas.Hash = "1000000000000", "2000000000000", "3000000000000", "4000000000000"
	set, err := census.List(t.Context(), disordered{hashes: []cas.Hash{a, b, c}}, func(error) {})
	require.NoError(t, err)
	g := census.NewGraph(set)
	g.Add(g.Node(a), b, gone)
	g.Add(g.Node(b), c)
	g.Add(g.Node(c), b) // a cycle
	require.Len(t, g.Absent(), 1)
	require.Equal(t, gone, g.Name(g.Absent()[0]))
	require.Equal(t, g.Absent()[0], g.Node(gone), "it has one number")

	reach := func(w *census.Walker, from cas.Hash) []cas.Hash {
		var found []cas.Hash
		w.Reach([]census.ID{g.Node(from)}, func(id census.ID) bool { found = append(found, g.Name(id)); return true })
		slices.Sort(found)
		return found
	}
	up := g.Up()
	require.Equal(t, []cas.Hash{a}, reach(up, a))
	require.Equal(t, []cas.Hash{a, gone}, reach(up, gone))
	require.Equal(t, []cas.Hash{a, b, c}, reach(up, c), "a walker can be used again")
	visits := 0
	up.Reach([]census.ID{g.Node(c)}, func(census.ID) bool { visits++; return false })
	require.Equal(t, 1, visits)
}

func TestEachNodeReadsAllOnce(t *testing.T) {
	t.Parallel()
	s, texts := filled(t, 1000)
	set, err := census.List(t.Context(), s, func(error) {})
	require.NoError(t, err)
	counts := map[cas.Hash]int{}
	look := func(_ *graph.Inspector, id census.ID, n cas.Node, err error) cas.Hash {
		if err != nil || n.Hash != set.Hash(id) {
			return ""
		}
		return n.Hash
	}
	take := func(chunk []cas.Hash) {
		for _, h := range chunk {
			counts[h]++
		}
	}
	inspector := func() *graph.Inspector { return graph.NewInspector(s) }
	require.NoError(t, census.EachNode(t.Context(), s, inspector, set, look, take))
	require.Len(t, counts, set.Len())
	for _, h := range texts {
		require.Equal(t, 1, counts[h])
	}

	ended, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, census.EachNode(ended, s, inspector, set, look, take), context.Canceled)
}
