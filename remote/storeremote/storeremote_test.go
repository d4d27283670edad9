package storeremote_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/storeremote"
	"github.com/united-workforce/uwf/util/prosetest"
)

// Each connection opens the directory again, as a new process would.
func TestConformance(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
		return remotetest.NewDirectory(t, a, time.Now).Open(a)
	})
	remotetest.RunUpkeep(t, func(t *testing.T, a cas.Algorithm) (remotetest.Open, remotetest.Upkeep) {
		d := remotetest.NewDirectory(t, a, time.Now)
		return d.Open(a), d.Upkeep(t)
	})
}

// An unreadable lease blocks its thread, but no other. If the file is removed, as the error advises, no fence
// is issued twice.
func TestUnreadableLease(t *testing.T) {
	t.Parallel()
	const id, other = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB"
	for name, text := range map[string]string{"cut": "{", "no fence": "{}", "a fence for ever": `{"fence":9223372036854775807}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, dir, at := t.Context(), filepath.Join(t.TempDir(), "team"), time.Now()
			now := func() time.Time {
				at = at.Add(time.Millisecond)
				return at
			}
			r, err := storeremote.Open(ctx, dir, storeremote.Options{Hash: cas.XXH3, Program: "test", Now: now})
			require.NoError(t, err)
			c := remotetest.NewChain(t, cas.XXH3, "p", 1)
			c.Push(r, c.Head())
			require.NoError(t, r.Swap(ctx, remote.Swap{Thread: id, Head: c.Heads[0]}))
			require.NoError(t, r.Swap(ctx, remote.Swap{Thread: other, Head: c.Heads[0]}))
			before, err := r.Take(ctx, id, "me", time.Minute)
			require.NoError(t, err)
			file := filepath.Join(dir, "leases", id+".json")
			require.NoError(t, os.WriteFile(file, []byte(text), 0o600))

			var all []remote.State
			for s, err := range r.Threads(ctx, remote.Filter{}) {
				require.NoError(t, err)
				require.NoError(t, s.Check())
				all = append(all, s)
			}
			require.Len(t, all, 2)
			prosetest.Text(t, all[0].Lease.Holder)
			require.Nil(t, all[1].Lease)
			_, err = r.Thread(ctx, id)
			require.NoError(t, err)
			move := remote.Swap{Thread: id, Was: c.Heads[0], Head: c.Heads[1], Fence: before.Fence}
			_, err = r.Take(ctx, id, "you", time.Minute)
			require.ErrorContains(t, err, file)
			prosetest.Error(t, err)
			require.ErrorContains(t, r.Swap(ctx, move), file)
			_, err = r.Take(ctx, other, "you", time.Minute)
			require.NoError(t, err)

			require.NoError(t, os.Remove(file))
			for range 2 {
				after, err := r.Take(ctx, id, "you", time.Minute)
				require.NoError(t, err)
				require.Greater(t, after.Fence, before.Fence)
				var fence *remote.FenceError
				require.ErrorAs(t, r.Swap(ctx, move), &fence)
				require.NoError(t, r.Release(ctx, id, after.Fence))
				before = after
			}
		})
	}
}
