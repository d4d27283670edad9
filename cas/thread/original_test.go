package thread_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// chainOfOriginals puts a start and steps as the original writes them; it returns the hashes, the start's
// first.
func chainOfOriginals(t *testing.T, s cas.Store, roles ...string) []cas.Hash {
	t.Helper()
	ctx := context.Background()
	put := func(typ cas.Hash, v any) cas.Hash {
		payload, err := cas.Encode(v)
		require.NoError(t, err)
		n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
		require.NoError(t, s.Put(ctx, n))
		return n.Hash
	}
	require.NoError(t, s.Put(ctx, s.Kinds().Meta()))
	schema := func(title string, fields ...string) cas.Hash {
		properties := map[string]any{}
		for _, f := range fields {
			properties[f] = map[string]any{}
		}
		return put(s.Kinds().MetaHash(), map[string]any{"title": title, "properties": properties})
	}
	start := schema("StartNode", "workflow", "prompt")
	step := schema("StepNode", "start", "prev", "role", "output", "detail")
	text := put(s.Kinds().MetaHash(), map[string]any{"type": "string"})
	content := put(text, "content")
	chain := []cas.Hash{put(start, map[string]any{"workflow": string(content), "prompt": "p"})}
	for i, role := range roles {
		var prev any
		if i > 0 {
			prev = string(chain[i])
		}
		chain = append(chain, put(step, map[string]any{
			"start": string(chain[0]), "prev": prev, "role": role, "agent": "uwf-x",
			"output": string(content), "detail": string(content),
		}))
	}
	return chain
}

// The original's steps don't contain their session, but their details do.
func TestSessionsOfOriginals(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	chain := chainOfOriginals(t, s, "a")
	th, err := thread.Open(t.Context(), s, chain[1])
	require.NoError(t, err)
	id, err := th.SessionID(t.Context(), *th.Last)
	require.NoError(t, err, "a detail of an unknown form is not an error")
	require.Empty(t, id)

	put := func(typ cas.Hash, v any) cas.Hash {
		payload, err := cas.Encode(v)
		require.NoError(t, err)
		n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
		require.NoError(t, s.Put(t.Context(), n))
		return n.Hash
	}
	detail := put(s.Kinds().MetaHash(), map[string]any{"title": "x-detail", "properties": map[string]any{"sessionId": map[string]any{}}})
	step := protocol.Step{Detail: put(detail, map[string]any{"sessionId": "s-1"})}
	id, err = thread.SessionID(t.Context(), s, step)
	require.NoError(t, err)
	require.Equal(t, "s-1", id)
}

// The original's steps don't contain their index: it follows from the chain.
func TestPlacesOfOriginals(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	chain := chainOfOriginals(t, s, "a", "b", "a", "a")
	th, err := thread.Open(t.Context(), s, chain[4])
	require.NoError(t, err)
	require.Equal(t, chain[0], th.StartHash)
	require.Equal(t, 4, th.Len())
	require.Equal(t, map[string]int{"a": 3, "b": 1}, th.Last.Visits)

	var indexes []int
	var visits []map[string]int
	for step, err := range th.Steps(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, step.Index+1, step.LimitBase, "the original's steps count against no limit")
		indexes, visits = append(indexes, step.Index), append(visits, step.Visits)
	}
	require.Equal(t, []int{3, 2, 1, 0}, indexes)
	require.Equal(t, []map[string]int{{"a": 3, "b": 1}, {"a": 2, "b": 1}, {"a": 1, "b": 1}, {"a": 1}}, visits)
}

// Our steps can follow the original's.
func TestOursFollowOriginals(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	chain := chainOfOriginals(t, s, "a", "b")
	th, err := thread.Open(t.Context(), s, chain[2])
	require.NoError(t, err)
	b := cas.NewBatch(s, time.Now)
	head, err := th.Append(t.Context(), b, protocol.Step{Role: "a", Agent: "uwf-y", Output: chain[0], Detail: chain[0], ExtractedBy: protocol.ByValue})
	require.NoError(t, err)
	require.NoError(t, b.Commit(t.Context()))

	th, err = thread.Open(t.Context(), s, head)
	require.NoError(t, err)
	require.Equal(t, 3, th.Len())
	require.Equal(t, 2, th.Last.LimitBase)
	require.Equal(t, map[string]int{"a": 2, "b": 1}, th.Last.Visits)
	n := 0
	for step, err := range th.Steps(t.Context()) {
		require.NoError(t, err)
		require.Equal(t, 2-n, step.Index)
		n++
	}
	require.Equal(t, 3, n)
}

// One of our steps with a wrong index after the original's is detected.
func TestMiscountedOriginals(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	chain := chainOfOriginals(t, s, "a", "b")
	for _, index := range []int{1, 5} {
		b := cas.NewBatch(s, time.Now)
		head, err := b.Add(t.Context(), protocol.Step{
			Start: chain[0], Prev: &chain[2], Index: index, Visits: map[string]int{"a": 2, "b": 1}, Role: "a",
			Output: chain[0], Detail: chain[0], ExtractedBy: protocol.ByValue,
		})
		require.NoError(t, err)
		require.NoError(t, b.Commit(t.Context()))
		th, err := thread.Open(t.Context(), s, head)
		require.NoError(t, err)
		var failed error
		for _, err := range th.Steps(t.Context()) {
			failed = err
		}
		var corrupt *cas.CorruptError
		require.ErrorAs(t, failed, &corrupt, "index %d", index)
	}
}
