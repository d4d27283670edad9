package thread_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
)

// An older uwf can continue a thread with steps of a newer one.
func TestAppendToAChainOfANewerUwf(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	hashes := f.chain(2)
	var schema map[string]any
	require.NoError(t, json.Unmarshal(protocol.SchemaJSON(protocol.Type{Kind: protocol.KindStep, Version: 1}), &schema))
	schema["title"] = "@uwf/step.9"
	schema["properties"].(map[string]any)["brandNew"] = map[string]any{}
	put := func(typ cas.Hash, value any) cas.Hash {
		payload, err := cas.Encode(value)
		require.NoError(t, err)
		n := cas.Node{Hash: f.store.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
		require.NoError(t, f.store.Put(t.Context(), n))
		return n.Hash
	}
	n, err := f.store.Get(t.Context(), hashes[2])
	require.NoError(t, err)
	value, err := n.Value()
	require.NoError(t, err)
	value.(map[string]any)["brandNew"] = "?"
	newer := put(put(f.store.Kinds().MetaHash(), schema), value)

	head := f.step(newer, f.next("planner"))
	require.NoError(t, readAll(t.Context(), f.store, head))
	require.Equal(t, 3, f.open(head).Len())
	n, err = f.store.Get(t.Context(), head)
	require.NoError(t, err)
	require.Equal(t, f.store.Kinds().Hash(protocol.KindStep), n.Type, "what says nothing new is of the first version")
}
