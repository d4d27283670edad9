//go:build postgres

package pgstore_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/ext/postgres/internal/pgtest"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

const thread = "01ARZ3NDEKTSV4RRFFQ69G5FAA"

// climb moves the head of a thread from one number to the next up to top, concurrently with others. It
// returns the number of its moves that succeeded.
func climb(ctx context.Context, db *pgstore.DB, top uint64) (moved int, err error) {
	for {
		head, err := db.Head(ctx, thread)
		if err != nil {
			return moved, err
		}
		at, err := number(head)
		if err != nil || at >= top {
			return moved, err
		}
		err = db.Move(ctx, thread, head, protocol.HashOf(at+1))
		var conflict *heads.ConflictError
		switch {
		case err == nil:
			moved++
		case !errors.As(err, &conflict):
			return moved, err
		}
	}
}

func number(h protocol.Hash) (uint64, error) {
	for n := uint64(1); n < 1<<12; n++ {
		if protocol.HashOf(n) == h {
			return n, nil
		}
	}
	return 0, fmt.Errorf("%s is none of the heads", h)
}

// TestNothingTwice checks that a change whose response was lost is made at most once, and that its caller
// learns the outcome. Each move is made by one caller, so the sum is exact.
func TestNothingTwice(t *testing.T) {
	t.Parallel()
	const workers, top = 6, 400
	query := fresh()
	require.NoError(t, open(t, query, pgstore.Options{}).Add(t.Context(), thread, protocol.HashOf(1), heads.Facts{}))
	proxy, address := proxied(t, query)
	var moved atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, workers)
	proxy.CutWithin(4000)
	for i := range workers {
		group.Go(func() {
			db, err := pgstore.Open(t.Context(), address, pgstore.Options{})
			if errs[i] = err; err != nil {
				return
			}
			n, err := climb(t.Context(), db, top)
			moved.Add(int64(n))
			errs[i] = errors.Join(err, db.Close())
		})
	}
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, top-1, moved.Load())
	require.Greater(t, proxy.Cuts(), 20)
	t.Logf("%d connections were cut", proxy.Cuts())
}

// TestCrashes crashes the database while threads move. All acknowledged changes must be stored.
func TestCrashes(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	const workers, top = 4, 600
	db := openAt(t, s.Socket("postgres", ""), pgstore.Options{Patience: 2 * time.Minute})
	require.NoError(t, db.Add(t.Context(), thread, protocol.HashOf(1), heads.Facts{}))
	var moved, stored atomic.Int64
	var group sync.WaitGroup
	errs := make([]error, workers)
	done := make(chan struct{})
	for i := range workers {
		group.Go(func() {
			n, err := climb(t.Context(), db, top)
			moved.Add(int64(n))
			errs[i] = err
		})
	}
	group.Go(func() { // nodes in parallel
		for {
			select {
			case <-done:
				return
			default:
			}
			n := castest.Node(t, db.Algorithm(), stored.Load())
			if err := db.Commit(t.Context(), n); err != nil {
				t.Error(err)
				return
			}
			stored.Add(1)
		}
	})
	group.Go(func() {
		defer close(done)
		for _, at := range []uint64{100, 250, 400} {
			for passed := uint64(0); passed < at; {
				head, err := db.Head(t.Context(), thread)
				if err != nil {
					t.Error(err)
					return
				}
				passed, _ = number(head)
			}
			if err := errors.Join(s.Halt(syscall.SIGQUIT), s.Run(t.Context())); err != nil {
				t.Error(err)
				return
			}
		}
	})
	group.Wait()
	require.NoError(t, errors.Join(errs...))
	require.EqualValues(t, top-1, moved.Load())
	for i := range stored.Load() {
		n := castest.Node(t, db.Algorithm(), i)
		got, err := db.Get(t.Context(), n.Hash)
		require.NoError(t, err, "node %d of %d", i, stored.Load())
		require.True(t, got.Equal(n))
	}
	t.Logf("%d moves, %d nodes", moved.Load(), stored.Load())
}

// TestGone checks the error if a database doesn't come back.
func TestGone(t *testing.T) {
	t.Parallel()
	s, err := pgtest.Start(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Stop()) })
	db := openAt(t, s.Socket("postgres", ""), pgstore.Options{Patience: 50 * time.Millisecond})
	require.NoError(t, s.Halt(syscall.SIGINT))
	_, err = db.Head(t.Context(), thread)
	require.ErrorContains(t, err, "the database does not answer")
}

// TestLeaseIsLost checks that an owner that sleeps until its lease has expired loses the swap and doesn't
// block others.
func TestLeaseIsLost(t *testing.T) {
	t.Parallel()
	db := open(t, fresh(), pgstore.Options{})
	ctx, r := t.Context(), db.Remote("test")
	require.NoError(t, db.Add(ctx, thread, protocol.HashOf(1), heads.Facts{}))
	slow, err := r.Take(ctx, thread, "slow", time.Second)
	require.NoError(t, err)
	var quick remote.Lease
	require.Eventually(t, func() bool {
		quick, err = r.Take(ctx, thread, "quick", time.Minute)
		return err == nil
	}, 20*time.Second, 10*time.Millisecond)
	require.Greater(t, quick.Fence, slow.Fence)
	_, err = r.Renew(ctx, thread, slow.Fence, time.Minute)
	var fence *remote.FenceError
	require.ErrorAs(t, err, &fence)
	require.NoError(t, r.Release(ctx, thread, slow.Fence), "it takes nothing from anybody")
	state, err := r.Thread(ctx, thread)
	require.NoError(t, err)
	require.Equal(t, "quick", state.Lease.Holder)
}

// TestDeceived checks content that doesn't match its hash.
func TestDeceived(t *testing.T) {
	t.Parallel()
	query := fresh()
	db := open(t, query, pgstore.Options{})
	good, other := castest.Node(t, db.Algorithm(), "good"), castest.Node(t, db.Algorithm(), "other")
	require.NoError(t, db.Put(t.Context(), good, other))
	sql(t, query, `update nodes set payload = $2 where hash = $1`, string(good.Hash), other.Payload)
	var corrupt *cas.CorruptError
	_, err := db.Get(t.Context(), good.Hash)
	require.ErrorAs(t, err, &corrupt)
	require.ErrorAs(t, db.Put(t.Context(), good), &corrupt, "it is not passed over in silence")
	for _, err := range db.Remote("test").Get(t.Context(), []cas.Hash{good.Hash}) {
		require.ErrorAs(t, err, &corrupt)
	}
}

// A damaged row affects its thread, but not the list.
func TestSpoiled(t *testing.T) {
	t.Parallel()
	ctx, query := t.Context(), fresh()
	r := open(t, query, pgstore.Options{}).Remote("test")
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Push(r, c.Head())
	ids := []string{thread, "01ARZ3NDEKTSV4RRFFQ69G5FAW", "01ARZ3NDEKTSV4RRFFQ69G5FAX", "01ARZ3NDEKTSV4RRFFQ69G5FAY"}
	for _, id := range ids {
		require.NoError(t, r.Swap(ctx, remote.Swap{Thread: id, Head: c.Head(), Facts: heads.Facts{Labels: map[string]string{"a": "b"}}}))
	}
	sql(t, query, `update facts set facts = '{"title": 7}' where thread = $1`, ids[1])
	sql(t, query, `update heads set head = 'nowhere' where thread = $1`, ids[2])
	listed := map[string]string{}
	for s, err := range r.Threads(ctx, remote.Filter{}) {
		require.NoError(t, err)
		listed[s.Thread] = s.Fault
	}
	require.Len(t, listed, len(ids))
	require.Empty(t, listed[ids[0]]+listed[ids[3]])
	require.NotEmpty(t, listed[ids[1]])
	require.NotEmpty(t, listed[ids[2]])

	sql(t, query, `update heads set fence = 9223372036854775807 where thread = $1`, ids[0])
	_, err := r.Take(ctx, ids[0], "me", time.Minute)
	require.ErrorContains(t, err, "update heads set fence = 0")
}

// Waiting for an agent holds no connection.
func TestIdleConnectionsEnd(t *testing.T) {
	t.Parallel()
	query := fresh() + "&application_name=idle"
	db := open(t, query, pgstore.Options{})
	conn, err := pgx.Connect(t.Context(), server.Socket("postgres", ""))
	require.NoError(t, err)
	defer func() { require.NoError(t, conn.Close(t.Context())) }()
	require.Eventually(t, func() bool {
		var sessions int
		err := conn.QueryRow(t.Context(), `select count(*) from pg_stat_activity where application_name = 'idle'`).Scan(&sessions)
		return err == nil && sessions == 0
	}, time.Minute, 100*time.Millisecond)
	_, err = db.Remote("test").Info(t.Context())
	require.NoError(t, err, "it makes another one")
}
