package cas_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// absent is a hash that identifies no node.
const absent = "00000000000AA"

// putTyped puts a schema for named objects, and one object.
func putTyped(t testing.TB, s cas.Store) (typ, named cas.Hash) {
	t.Helper()
	typ = putNode(t, s, s.Kinds().MetaHash(), map[string]any{
		"type": "object", "properties": map[string]any{"name": map[string]any{"type": "string"}},
	}).Hash
	return typ, putNode(t, s, typ, map[string]any{"name": "root"}).Hash
}

func putNode(t testing.TB, s cas.Store, typ cas.Hash, value any) cas.Node {
	t.Helper()
	payload, err := cas.Encode(value)
	require.NoError(t, err)
	n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
	require.NoError(t, s.Put(context.Background(), s.Kinds().Meta(), n))
	return n
}

func TestVerify(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := castest.NewStore(t, cas.XXH3)
	typ, root := putTyped(t, s)
	verifier := cas.NewVerifier(s)
	for _, h := range []cas.Hash{root, typ, s.Kinds().MetaHash()} {
		require.NoError(t, cas.Verify(ctx, s, h))
		require.NoError(t, verifier.Verify(ctx, h))
	}

	var invalid *cas.SchemaError
	wrong := putNode(t, s, typ, map[string]any{"name": 7})
	require.ErrorAs(t, cas.Verify(ctx, s, wrong.Hash), &invalid)
	require.Equal(t, typ, invalid.Type)
	badSchema := putNode(t, s, s.Kinds().MetaHash(), map[string]any{"type": "nothing"})
	require.ErrorAs(t, cas.Verify(ctx, s, badSchema.Hash), &invalid)
	require.Equal(t, s.Kinds().MetaHash(), invalid.Type)

	orphan := castest.Node(t, cas.XXH3, "x")
	require.NoError(t, s.Put(ctx, orphan))
	require.ErrorIs(t, cas.Verify(ctx, s, orphan.Hash), cas.ErrNotFound)
	require.ErrorIs(t, cas.Verify(ctx, s, absent), cas.ErrNotFound)

	var corrupt *cas.CorruptError
	untyped := putNode(t, s, root, "its type is no schema")
	require.ErrorAs(t, cas.Verify(ctx, s, untyped.Hash), &corrupt)
	require.Equal(t, root, corrupt.Hash)
}

func TestResolve(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	s := castest.NewStore(t, cas.XXH3)
	_, root := putTyped(t, s)

	for _, prefix := range []string{string(root), string(root[:12]), lower(string(root))} {
		h, err := cas.Resolve(ctx, s, prefix)
		require.NoError(t, err)
		require.Equal(t, root, h)
	}
	for _, prefix := range []string{"", "00000000000AA", "00000000000", "U", "../", "x y", string(root) + "0"} {
		_, err := cas.Resolve(ctx, s, prefix)
		require.ErrorIs(t, err, cas.ErrNotFound, "%q", prefix)
	}

	var first cas.Hash
	for i := 0; first == ""; i++ {
		n := castest.Node(t, cas.XXH3, i)
		require.NoError(t, s.Put(ctx, n))
		if n.Hash != root && n.Hash[0] == root[0] {
			first = n.Hash
		}
	}
	_, err := cas.Resolve(ctx, s, string(root[:1]))
	var ambiguous *cas.AmbiguousError
	require.ErrorAs(t, err, &ambiguous)
	require.Contains(t, ambiguous.Candidates, first)
	require.Contains(t, ambiguous.Candidates, root)
	require.IsIncreasing(t, ambiguous.Candidates)
	prosetest.Error(t, err)
}
