package remotetest

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/util/gitobject"
)

func leases(t *testing.T, w world) {
	ctx := t.Context()
	_, err := w.Take(ctx, idA, "me", time.Minute)
	require.ErrorIs(t, err, heads.ErrNoThread)
	c := NewChain(t, w.a, "p", 3)
	c.Push(w, c.Head())
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Heads[0]}))

	mine, err := w.Take(ctx, idA, "me", time.Minute)
	require.NoError(t, err)
	require.Positive(t, mine.Fence)
	require.Equal(t, "me", mine.Holder)
	require.InDelta(t, time.Minute.Milliseconds(), mine.LeftMs, 20_000)
	info, err := w.Info(ctx)
	require.NoError(t, err)
	require.InDelta(t, info.NowMs+mine.LeftMs, mine.Until, 20_000, "by one clock")

	other := w.open()
	for _, holder := range []string{"you", "me"} {
		_, err = other.Take(ctx, idA, holder, time.Minute)
		var taken *remote.LeasedError
		require.ErrorAs(t, err, &taken)
		require.Equal(t, "me", taken.Lease.Holder)
		require.Equal(t, idA, taken.Lease.Thread)
		require.Zero(t, taken.Lease.Fence)
		require.Positive(t, taken.Lease.LeftMs)
	}
	var taken *remote.LeasedError
	require.ErrorAs(t, other.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[1]}), &taken,
		"nobody moves it meanwhile")
	var fence *remote.FenceError
	require.ErrorAs(t, other.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[1],
		Fence: mine.Fence + 1}), &fence)
	_, err = other.Renew(ctx, idA, mine.Fence+1, time.Minute)
	require.ErrorAs(t, err, &fence)
	require.NoError(t, other.Release(ctx, idA, mine.Fence+1), "another's is not released")

	longer, err := w.Renew(ctx, idA, mine.Fence, time.Hour)
	require.NoError(t, err)
	require.Equal(t, mine.Fence, longer.Fence)
	require.Greater(t, longer.Until, mine.Until)
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[1], Fence: mine.Fence}))
	conflict(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[2], Fence: mine.Fence}),
		remote.ConflictError{Thread: idA, Want: c.Heads[0], Got: c.Heads[1]})
	require.NoError(t, w.Release(ctx, idA, mine.Fence))
	require.NoError(t, w.Release(ctx, idA, mine.Fence), "twice is no fault")
	require.ErrorAs(t, w.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[1], Head: c.Heads[2], Fence: mine.Fence}), &fence)

	yours, err := other.Take(ctx, idA, "you", time.Minute)
	require.NoError(t, err)
	require.Greater(t, yours.Fence, mine.Fence)
	for _, wrong := range []time.Duration{0, -time.Second, remote.MinLease - 1, remote.MaxLease + 1} {
		_, err := w.Renew(ctx, idA, yours.Fence, wrong)
		require.Error(t, err, wrong)
		_, err = w.Take(ctx, idB, "me", wrong)
		require.Error(t, err, wrong)
	}
	for _, holder := range []string{"", string(make([]byte, remote.MaxHolder+1)), "\xff"} {
		_, err := w.Take(ctx, idA, holder, time.Minute)
		require.Error(t, err)
	}
}

// fences checks that a client loses after its lease has expired, whether or not another client has taken it.
func fences(t *testing.T, w world) {
	ctx := t.Context()
	c := NewChain(t, w.a, "p", 3)
	c.Push(w, c.Head())
	require.NoError(t, w.Swap(ctx, remote.Swap{Thread: idA, Head: c.Heads[0]}))
	frozen, err := w.Take(ctx, idA, "frozen", remote.MinLease)
	require.NoError(t, err)
	other := w.open()
	ended := func() bool {
		s, err := other.Thread(ctx, idA)
		return err == nil && s.Lease == nil
	}
	require.Eventually(t, ended, time.Minute, 20*time.Millisecond, "it ends by the remote's clock")

	late := remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[1], Fence: frozen.Fence}
	var fence *remote.FenceError
	require.ErrorAs(t, w.Swap(ctx, late), &fence, "it has ended, and nobody has it")
	_, err = w.Renew(ctx, idA, frozen.Fence, time.Minute)
	require.ErrorAs(t, err, &fence)

	lease, err := other.Take(ctx, idA, "other", time.Minute)
	require.NoError(t, err)
	require.Greater(t, lease.Fence, frozen.Fence)
	require.ErrorAs(t, w.Swap(ctx, late), &fence, "somebody else has it")
	require.NoError(t, w.Release(ctx, idA, frozen.Fence))
	require.NoError(t, other.Swap(ctx, remote.Swap{Thread: idA, Was: c.Heads[0], Head: c.Heads[2], Fence: lease.Fence}))
	require.NoError(t, other.Release(ctx, idA, lease.Fence))
	require.Error(t, w.Swap(ctx, late))
	requireHead(t, w, idA, c.Heads[2])
}

// leaseRaces checks that only one of several clients gets a lease, and that only its swap succeeds.
func leaseRaces(t *testing.T, w world) {
	const many, rounds = 8, 5
	c := NewChain(t, w.a, "p", rounds)
	c.Push(w, c.Head())
	require.NoError(t, w.Swap(t.Context(), remote.Swap{Thread: idA, Head: c.Heads[0]}))
	remotes := connections(w, many)
	last := int64(0)
	for round := range rounds {
		got := make([]remote.Lease, many)
		won := winner(t, many, func(i int) (err error) {
			got[i], err = remotes[i].Take(t.Context(), idA, "same", time.Minute)
			return lostTo[*remote.LeasedError](err)
		})
		require.Greater(t, got[won].Fence, last, "each is greater than those before")
		swapped := winner(t, many, func(i int) error {
			fence := got[won].Fence
			if i != won {
				fence = last - int64(i) // a token from an earlier lease, or an invalid one
			}
			err := remotes[i].Swap(t.Context(), remote.Swap{Thread: idA, Was: c.Heads[round], Head: c.Heads[round+1],
				Fence: max(fence, 0)})
			return lostTo[*remote.ConflictError](lostTo[*remote.LeasedError](lostTo[*remote.FenceError](err)))
		})
		require.Equal(t, won, swapped)
		last = got[won].Fence
		require.NoError(t, remotes[won].Release(t.Context(), idA, last))
	}
	requireHead(t, w, idA, c.Head())
}

func objects(t *testing.T, w world) {
	ctx := t.Context()
	info, err := w.Info(ctx)
	require.NoError(t, err)
	for _, function := range []string{"sha1", "sha256"} {
		file := remote.Object{Kind: gitobject.File, Content: []byte("a file")}
		file.ID = gitobject.ID(file.Kind, file.Content, function)
		large := remote.Object{Kind: gitobject.File, Content: make([]byte, 20<<20)}
		large.ID = gitobject.ID(large.Kind, large.Content, function)
		empty := remote.Object{Kind: gitobject.Directory}
		empty.ID = gitobject.ID(empty.Kind, nil, function)
		all := []remote.Object{file, empty, large}
		if !info.Objects {
			require.Error(t, w.PutObjects(ctx, all))
			return
		}
		ids := []protocol.Tree{file.ID, empty.ID, large.ID}
		missing, err := w.MissingObjects(ctx, ids)
		require.NoError(t, err)
		require.Equal(t, ids, missing)
		require.NoError(t, w.PutObjects(ctx, all))
		require.NoError(t, w.PutObjects(ctx, all[:1]), "again")
		other := w.open()
		missing, err = other.MissingObjects(ctx, ids)
		require.NoError(t, err)
		require.Empty(t, missing)
		got := collect(t, other.GetObjects(ctx, reversed(ids)))
		require.Len(t, got, 3)
		for i, o := range reversed(all) {
			require.Equal(t, o.ID, got[i].ID)
			require.Equal(t, o.Kind, got[i].Kind)
			require.Equal(t, len(o.Content), len(got[i].Content))
			require.NoError(t, got[i].Check())
		}
		absent := gitobject.ID(gitobject.File, []byte("absent"), function)
		require.ErrorIs(t, failure(other.GetObjects(ctx, []protocol.Tree{absent})), cas.ErrNotFound)
		wrong := file
		wrong.Content = []byte("another")
		require.Error(t, w.PutObjects(ctx, []remote.Object{wrong}))
		wrong = file
		wrong.Kind = gitobject.Directory
		require.Error(t, w.PutObjects(ctx, []remote.Object{wrong}))
	}
}
