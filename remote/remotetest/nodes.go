package remotetest

import (
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/remote"
)

func nodes(t *testing.T, w world) {
	ctx := t.Context()
	info, err := w.Info(ctx)
	require.NoError(t, err)
	require.Equal(t, w.a, info.Hash)
	require.NotEmpty(t, info.Program)
	require.Positive(t, info.NowMs)

	c := NewChain(t, w.a, "p", 3)
	all := c.All(c.Head())
	missing, err := w.Missing(ctx, []cas.Hash{c.Heads[2], c.Heads[0], c.Heads[1]})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{c.Heads[2], c.Heads[0], c.Heads[1]}, missing, "in the order given")
	c.Push(w, c.Head())

	other := w.open()
	missing, err = other.Missing(ctx, all)
	require.NoError(t, err)
	require.Empty(t, missing)
	got := collect(t, other.Get(ctx, reversed(all)))
	require.Equal(t, reversed(all), hashesOf(got), "in the order given")
	for _, r := range got {
		n, err := w.a.UnmarshalFile(r.Hash, r.File)
		require.NoError(t, err)
		want, err := c.Store.Get(ctx, r.Hash)
		require.NoError(t, err)
		require.True(t, want.Equal(n))
	}
	for _, err := range other.Get(ctx, all) {
		require.NoError(t, err)
		break // ending the iteration early is allowed
	}
	var none *remote.MissingError
	require.ErrorAs(t, failure(other.Get(ctx, []cas.Hash{all[0], "0000000000000"})), &none)
	require.ErrorIs(t, none, cas.ErrNotFound)
	require.Equal(t, "0000000000000", none.Hash)
	require.Empty(t, collect(t, other.Get(ctx, nil)))
	different, err := other.Put(ctx, nil)
	require.NoError(t, err)
	require.Empty(t, different)
	large := castest.Node(t, w.a, strings.Repeat("large ", 2<<20))
	_, err = other.Put(ctx, []remote.Record{{Hash: large.Hash, File: cas.MarshalFile(large)}})
	require.NoError(t, err, "one record may be larger than a batch")
	got = collect(t, w.Get(ctx, []cas.Hash{large.Hash}))
	require.Len(t, got, 1)
	require.Equal(t, cas.MarshalFile(large), got[0].File)
}

func stays(t *testing.T, w world) {
	ctx := t.Context()
	one, two := castest.Collision(t, w.a)
	_, err := w.Put(ctx, []remote.Record{{Hash: one.Hash, File: cas.MarshalFile(one)}})
	require.NoError(t, err)
	_, err = w.Put(ctx, []remote.Record{{Hash: two.Hash, File: cas.MarshalFile(two)}})
	var collision *cas.CollisionError
	require.ErrorAs(t, err, &collision)
	require.Equal(t, two.Hash, collision.Hash)

	later := one
	later.Timestamp++
	different, err := w.Put(ctx, []remote.Record{{Hash: one.Hash, File: cas.MarshalFile(later)}})
	require.NoError(t, err)
	require.Empty(t, different)
	got := collect(t, w.Get(ctx, []cas.Hash{one.Hash}))
	require.Equal(t, cas.MarshalFile(one), got[0].File, "the first one stays")
}

func redactions(t *testing.T, w world) {
	ctx := t.Context()
	gone, whole := castest.Node(t, w.a, "a key"), castest.Node(t, w.a, "no key")
	c := &Chain{Store: NewChain(t, w.a, "p", 0).Store, t: t}
	require.NoError(t, c.Store.Put(ctx, gone, whole))

	different, err := w.Put(ctx, []remote.Record{c.tombstone(gone.Hash, "a key"), c.Record(whole.Hash)})
	require.NoError(t, err)
	require.Empty(t, different)
	missing, err := w.Missing(ctx, []cas.Hash{gone.Hash})
	require.NoError(t, err)
	require.Empty(t, missing, "a tombstone is there")

	other := w.open()
	for range 2 {
		different, err = other.Put(ctx, []remote.Record{c.Record(gone.Hash), c.tombstone(whole.Hash, "spite")})
		require.NoError(t, err)
		require.ElementsMatch(t, []cas.Hash{gone.Hash, whole.Hash}, different)
	}
	different, err = other.Put(ctx, []remote.Record{c.tombstone(gone.Hash, "another reason")})
	require.NoError(t, err)
	require.Empty(t, different)
	got := collect(t, other.Get(ctx, []cas.Hash{gone.Hash, whole.Hash}))
	require.Equal(t, []remote.Record{c.tombstone(gone.Hash, "a key"), c.Record(whole.Hash)}, got, "each as it came first")
}

func wrongNodes(t *testing.T, w world) {
	ctx := t.Context()
	good, other := castest.Node(t, w.a, "good"), castest.Node(t, w.a, "other")
	file := cas.MarshalFile(good)
	foreign, err := cas.MarshalTombstone(cas.Tombstone{Hash: good.Hash, Type: good.Type, Foreign: true})
	require.NoError(t, err)
	tombstone, err := cas.MarshalTombstone(cas.Tombstone{Hash: good.Hash, Type: good.Type, Reason: "why"})
	require.NoError(t, err)
	uncanonical := cas.MarshalFile(cas.Node{Hash: w.a.Sum(good.Type, []byte{0x18, 1}), Type: good.Type,
		Payload: []byte{0x18, 1}})
	for name, r := range map[string]remote.Record{
		"the content of another": {Hash: good.Hash, File: cas.MarshalFile(other)},
		"nothing":                {Hash: good.Hash},
		"cut":                    {Hash: good.Hash, File: file[:len(file)-3]},
		"longer":                 {Hash: good.Hash, File: append(slices.Clone(file), 0)},
		"no node":                {Hash: good.Hash, File: []byte("good")},
		"not canonical":          {Hash: w.a.Sum(good.Type, []byte{0x18, 1}), File: uncanonical},
		"no hash":                {Hash: "../../etc/pass", File: file},
		"a cut tombstone":        {Hash: good.Hash, File: tombstone[:len(tombstone)-1]},
		"another's tombstone":    {Hash: other.Hash, File: tombstone},
		"a foreign tombstone":    {Hash: good.Hash, File: foreign},
	} {
		_, err := w.Put(ctx, []remote.Record{r})
		require.Error(t, err, name)
	}
	_, err = w.Put(ctx, []remote.Record{{Hash: good.Hash, File: file}, {Hash: good.Hash, File: file}})
	require.Error(t, err, "twice")
	missing, err := w.Missing(ctx, []cas.Hash{good.Hash, other.Hash})
	require.NoError(t, err)
	require.Len(t, missing, 2, "nothing is left of what was refused")
	_, err = w.Put(ctx, []remote.Record{{Hash: good.Hash, File: file}})
	require.NoError(t, err, "nor is anything in the way")
}

func walks(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 4)
	c.Push(w, c.Head())
	require.Equal(t, c.All(c.Head()), collect(t, w.Walk(ctx, []cas.Hash{c.Head()}, nil)))
	after := collect(t, w.Walk(ctx, []cas.Hash{c.Head()}, []cas.Hash{c.Heads[3], c.Heads[0]}))
	require.Contains(t, after, c.Head())
	for _, h := range []cas.Hash{c.Heads[0], c.Heads[1], c.Heads[3], c.Workflow} {
		require.NotContains(t, after, h)
	}
	require.Empty(t, collect(t, w.Walk(ctx, c.Heads, c.Heads)))
	for _, err := range w.Walk(ctx, []cas.Hash{c.Head()}, nil) {
		require.NoError(t, err)
		break
	}
	var none *remote.MissingError
	require.ErrorAs(t, failure(w.Walk(ctx, []cas.Hash{c.Head(), "0000000000000"}, nil)), &none)
	require.Equal(t, "0000000000000", none.Hash)
}
