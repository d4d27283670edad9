package remotetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
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
