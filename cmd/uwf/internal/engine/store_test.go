//go:build unix

package engine

import (
	"context"
	"sync/atomic"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// countingStore counts how many nodes are read.
type countingStore struct {
	cas.Store
	gets atomic.Int64
}

func (s *countingStore) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, h)
}

// extend puts the next step of a thread without an agent.
func (a *actor) extend(w *world, head protocol.Hash) protocol.Hash {
	t, err := thread.Open(a.ctx, w.Store, head)
	require.NoError(w.t, err)
	wf, err := t.Workflow(a.ctx)
	require.NoError(w.t, err)
	b := w.batch()
	out, err := b.AddValue(a.ctx, wf.Roles[a.role].Frontmatter, map[string]any{"$status": "again"})
	require.NoError(w.t, err)
	detail, err := b.Add(a.ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}})
	require.NoError(w.t, err)
	h, err := t.Append(a.ctx, b, thread.Next{
		Role: a.role, Agent: "uwf-fake", Output: out, Detail: detail, SessionID: "s", ExtractedBy: protocol.ByValue,
	})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Put(a.ctx))
	return h
}
