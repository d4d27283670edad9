package remotetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

func removals(t *testing.T, w world, owner Upkeep) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 1)
	c.Push(w, c.Head())
	end := &remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCompleted, CompletedAt: 5}
	for _, id := range []string{idA, idB} {
		require.NoError(t, w.Swap(ctx, remote.Swap{Thread: id, Head: c.Head(), Ended: end}))
	}
	require.NoError(t, owner.Remove(idA))

	gone := func(r remote.Remote, err error) {
		t.Helper()
		var is *remote.GoneError
		require.ErrorAs(t, err, &is)
		require.NotErrorIs(t, err, heads.ErrNoThread)
		require.Equal(t, idA, is.Thread)
	}
	for _, r := range []remote.Remote{w.Remote, w.open()} {
		_, err := r.Thread(ctx, idA)
		gone(r, err)
		gone(r, r.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head()}))
		gone(r, r.Swap(ctx, remote.Swap{Thread: idA, Was: c.Head(), WasEnded: true, Head: c.Head()}))
		_, err = r.Take(ctx, idA, "me", time.Minute)
		gone(r, err)
		child := remote.Swap{Thread: idC, Head: c.Head(), Facts: heads.Facts{Parent: &heads.Parent{Thread: idA, Head: c.Head()}}}
		require.ErrorAs(t, r.Swap(ctx, child), new(*remote.GoneError))
		threads := collect(t, r.Threads(ctx, remote.Filter{}))
		require.Len(t, threads, 1)
		require.Equal(t, idB, threads[0].Thread)
	}
}

func redactionList(t *testing.T, w world, owner Upkeep) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 2)
	c.Begin(w, idA)
	none, before, err := w.Redactions(ctx, "")
	require.NoError(t, err)
	require.Empty(t, none)

	var details []cas.Hash
	for _, head := range c.Heads[1:] {
		chain, err := thread.Open(ctx, c.Store, head)
		require.NoError(t, err)
		details = append(details, chain.Last.Detail)
	}
	// A tombstone that comes with a push is no redaction of the remote's owner.
	other := NewChain(t, w.a, "other", 0)
	_, err = w.Put(ctx, []remote.Record{other.tombstone(other.Head(), "elsewhere")})
	require.NoError(t, err)
	for i, h := range details {
		require.NoError(t, owner.Redact(idA, h, "a key"))
		list, state, err := w.open().Redactions(ctx, before)
		require.NoError(t, err)
		require.Len(t, list, i+1)
		require.NotEqual(t, before, state)
		for _, r := range list {
			require.Contains(t, details[:i+1], r.Hash)
			require.Contains(t, []string{"", idA}, r.Thread)
			require.Equal(t, "a key", r.Reason)
		}
		same, still, err := w.Redactions(ctx, state)
		require.NoError(t, err)
		require.Empty(t, same)
		require.Equal(t, state, still)
		before = state
	}
}
