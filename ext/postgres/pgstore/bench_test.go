//go:build postgres

package pgstore_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

// figures are statistics of the server.
type figures struct{ commits, wal, disk int64 }

func measured(b *testing.B, schema string) (f figures) {
	b.Helper()
	ctx := b.Context()
	conn, err := pgx.Connect(ctx, server.Socket("postgres", ""))
	require.NoError(b, err)
	defer func() { require.NoError(b, conn.Close(ctx)) }()
	const query = `select (select xact_commit from pg_stat_database where datname = current_database()),
		pg_current_wal_lsn() - '0/0', coalesce((select sum(pg_total_relation_size(c.oid)) from pg_class c where relnamespace = to_regnamespace($1) and relkind = 'r'), 0)::bigint`
	require.NoError(b, conn.QueryRow(ctx, query, schema).Scan(&f.commits, &f.wal, &f.disk))
	return f
}

// BenchmarkMachines measures the database's cost of a step: reading the thread, the lease, the nodes, the
// swap and the end of the lease, on one connection. A helper started for a step also opens a connection and
// reads the schema's settings.
func BenchmarkMachines(b *testing.B) {
	for _, turn := range []int{100, 4000, 40_000} {
		b.Run(fmt.Sprintf("step/turn=%d", turn), func(b *testing.B) { benchmarkSteps(b, turn) })
	}
	b.Run("push/steps=1000", func(b *testing.B) {
		const rounds = 3
		chain := remotetest.NewChain(b, cas.XXH3, "a task", 1000)
		var took time.Duration
		for range rounds {
			db := openFor(b, fresh())
			began := time.Now()
			chain.Begin(db.Remote("bench"), thread)
			took += time.Since(began)
			require.NoError(b, db.Close())
		}
		b.ReportMetric(0, "ns/op")
		b.ReportMetric(float64(took.Milliseconds())/rounds, "ms/push")
	})
}

func openFor(b *testing.B, query string) *pgstore.DB {
	b.Helper()
	db, err := pgstore.Open(b.Context(), server.Socket("postgres", query+"&pool_max_conns=1"), pgstore.Options{})
	require.NoError(b, err)
	return db
}

func benchmarkSteps(b *testing.B, turn int) {
	ctx, query := b.Context(), fresh()
	schema := query[len("&schema="):]
	db := openFor(b, query)
	r := db.Remote("bench")
	chain := remotetest.NewChain(b, cas.XXH3, "a task", b.N)
	require.NoError(b, push(b, chain, r, chain.Heads[0], ""))
	require.NoError(b, r.Swap(ctx, remote.Swap{Thread: thread, Head: chain.Heads[0]}))
	random := rand.New(rand.NewPCG(1, uint64(turn)))
	before, bytes := measured(b, schema), 0
	b.ResetTimer()
	for i := range b.N {
		was, next := chain.Heads[i], chain.Heads[i+1]
		_, err := r.Thread(ctx, thread)
		require.NoError(b, err)
		lease, err := r.Take(ctx, thread, "bench", time.Minute)
		require.NoError(b, err)
		said, err := cas.Encode(text(random, turn)) // the agent's text, which doesn't compress
		require.NoError(b, err)
		extra := cas.Node{Hash: db.Algorithm().Sum(next, said), Type: next, Payload: said, Timestamp: 1}
		require.NoError(b, push(b, chain, r, next, was, remote.Record{Hash: extra.Hash, File: cas.MarshalFile(extra)}))
		require.NoError(b, r.Swap(ctx, remote.Swap{Thread: thread, Was: was, Head: next, Fence: lease.Fence}))
		require.NoError(b, r.Release(ctx, thread, lease.Fence))
		bytes += turn
	}
	b.StopTimer()
	require.NoError(b, db.Close()) // the server counts a connection's work when it ends
	after := measured(b, schema)
	for name, total := range map[string]int64{
		"commits/step": after.commits - before.commits, "wal-B/step": after.wal - before.wal, "disk-B/step": after.disk - before.disk, "said-B/step": int64(bytes),
	} {
		b.ReportMetric(float64(total)/float64(b.N), name)
	}
}

func text(random *rand.Rand, length int) string {
	said := make([]byte, length)
	for i := range said {
		said[i] = byte('a' + random.IntN(26))
	}
	return string(said)
}

// push puts the nodes of a step and swaps the head.
func push(b *testing.B, chain *remotetest.Chain, r remote.Remote, next, was cas.Hash, more ...remote.Record) error {
	b.Helper()
	have := []cas.Hash{}
	if was != "" {
		have = append(have, was)
	}
	records := more
	for h, err := range remote.Walk(b.Context(), chain.Store, []cas.Hash{next}, have) {
		if err != nil {
			return err
		}
		records = append(records, chain.Record(h))
	}
	_, err := r.Put(b.Context(), records)
	return err
}
