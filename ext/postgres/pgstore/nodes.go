package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas"
)

// Get implements [cas.Getter].
func (db *DB) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	page, err := db.nodes().page(ctx, []cas.Hash{h})
	if err == nil {
		err = page[0].err
	}
	if err != nil {
		return cas.Node{}, err
	}
	return page[0].Node, nil
}

func notFound(h cas.Hash) error { return fmt.Errorf("%w: %s", cas.ErrNotFound, h) }

// row is a node as read from the table.
type row struct {
	cas.Node
	err error // [cas.ErrNotFound], [*cas.RedactedError], or [*cas.CorruptError]
}

func (db *DB) nodes() lookup[cas.Hash, row] {
	return lookup[cas.Hash, row]{
		db: db, table: "nodes", key: "hash", columns: "type, payload, stored, tombstone", content: "payload",
		scan: db.scan, keyOfRow: func(r row) cas.Hash { return r.Hash },
	}
}

// scan reads a node and verifies it.
func (db *DB) scan(rows pgx.CollectableRow) (r row, err error) {
	var typ *string
	var stored *int64
	var tombstone []byte
	if err := rows.Scan(&r.Hash, &typ, &r.Payload, &stored, &tombstone); err != nil {
		return r, err
	}
	switch {
	case typ == nil || stored == nil:
		r.err = notFound(r.Hash)
	case tombstone != nil:
		t, err := cas.UnmarshalTombstone(r.Hash, tombstone)
		if r.err = err; err == nil {
			r.err = &cas.RedactedError{Tombstone: t}
		}
	default:
		r.Type, r.Timestamp = cas.Hash(*typ), *stored
		r.err = mendable(db.verify(r.Node))
	}
	return r, nil
}

// mendable adds to the error about a damaged row the statement that removes it, which only the owner of the
// tables can execute.
func mendable(err error) error {
	var corrupt *cas.CorruptError
	if !errors.As(err, &corrupt) {
		return err
	}
	is := *corrupt
	is.Reason += fmt.Sprintf("; the owner of the tables removes it with \"delete from nodes where hash = '%s'\", and "+
		"a push sends it again", is.Hash)
	return &is
}

// verify checks a node against its hash, as [cas.Algorithm.UnmarshalFile] does.
func (db *DB) verify(n cas.Node) error {
	if !n.Type.Valid() || n.Timestamp < 0 || len(n.Payload) > cas.MaxPayload {
		return &cas.CorruptError{Hash: n.Hash, Reason: "its row in the database is damaged"}
	}
	_, err := db.a.UnmarshalFile(n.Hash, cas.MarshalFile(n))
	return err
}

// Has implements [cas.Store].
func (db *DB) Has(ctx context.Context, h cas.Hash) (bool, error) {
	missing, err := db.nodes().missing(ctx, []cas.Hash{h})
	return err == nil && len(missing) == 0, err
}

// Put implements [cas.Store]. The nodes are durable when it returns.
func (db *DB) Put(ctx context.Context, nodes ...cas.Node) error {
	given := make([]given, 0, len(nodes))
	for _, n := range nodes {
		if err := cmp.Or(ctx.Err(), db.a.Check(n)); err != nil {
			return err
		}
		given = append(given, nodeOf(n))
	}
	_, err := db.put(ctx, given)
	return err
}

// Commit implements [cas.Store].
func (db *DB) Commit(ctx context.Context, nodes ...cas.Node) error { return db.Put(ctx, nodes...) }

// given is a node or a tombstone to put.
type given struct {
	cas.Node
	tombstone []byte // set instead of a payload
}

func nodeOf(n cas.Node) given { return given{Node: n} }

// put puts nodes in batches of one statement each. It returns the nodes that are redacted here and intact in
// all, or the reverse.
func (db *DB) put(ctx context.Context, all []given) (different []cas.Hash, err error) {
	sorted, err := distinct(all)
	if err != nil {
		return nil, err
	}
	for batch, bytes := range batches(sorted, func(g given) int { return len(g.Payload) }) {
		found, err := db.putBatch(ctx, batch, mode(bytes))
		different = append(different, found...)
		if err != nil {
			return different, err
		}
	}
	return different, nil
}

// distinct returns the nodes without duplicates, in the order of their hashes. A common order prevents
// deadlocks between clients that put the same nodes.
func distinct(all []given) ([]given, error) {
	sorted := slices.Clone(all)
	slices.SortStableFunc(sorted, func(a, b given) int { return strings.Compare(string(a.Hash), string(b.Hash)) })
	last := 0
	for i, g := range sorted {
		if i == 0 || g.Hash != sorted[last].Hash {
			if i > 0 {
				last++
			}
			sorted[last] = g
			continue
		}
		if was := sorted[last]; was.tombstone == nil && g.tombstone == nil && !was.Equal(g.Node) {
			return nil, &cas.CollisionError{Hash: g.Hash}
		}
	}
	return sorted[:min(len(sorted), last+1)], nil
}

// putBatch inserts missing nodes, and returns existing ones that differ. The comparison happens here, because
// the database is not trusted with it.
func (db *DB) putBatch(ctx context.Context, nodes []given, mode pgx.QueryExecMode) (different []cas.Hash, err error) {
	const query = `with locked as materialized (` + lockShared + `), given as materialized (
			select g.* from locked, unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[], $5::bytea[])
				as g(hash, type, payload, stored, tombstone)
		), fresh as (
			insert into nodes (hash, type, payload, stored, tombstone) select * from given on conflict (hash) do nothing returning hash
		), young as (
			update nodes n set put = clock_timestamp() from given g where n.hash = g.hash and ` + old + `
		)
		select g.hash from given g left join fresh f using (hash) left join nodes n using (hash)
		where f.hash is null and (g.type, g.payload) is distinct from (n.type, n.payload) order by g.hash`
	hashes, types := make([]string, len(nodes)), make([]string, len(nodes))
	payloads, tombstones, stored := make([][]byte, len(nodes)), make([][]byte, len(nodes)), make([]int64, len(nodes))
	for i, n := range nodes {
		hashes[i], types[i], stored[i] = string(n.Hash), string(n.Type), n.Timestamp
		if payloads[i], tombstones[i] = n.Payload, n.tombstone; n.tombstone != nil {
			payloads[i] = nil
		}
	}
	var doubtful []cas.Hash
	swept := db.recent.state()
	if err := db.try(ctx, func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, query, mode, hashes, types, payloads, stored, tombstones)
		if err == nil {
			doubtful, err = pgx.CollectRows(rows, pgx.RowTo[cas.Hash])
		}
		return err
	}); err != nil {
		return nil, err
	}
	different, err = db.compare(ctx, nodes, doubtful)
	if err == nil {
		db.remember(nodes, different, swept)
	}
	return different, err
}

// compare compares nodes with the existing ones.
func (db *DB) compare(ctx context.Context, nodes []given, doubtful []cas.Hash) (different []cas.Hash, err error) {
	sent := make(map[cas.Hash]given, len(nodes))
	for _, n := range nodes {
		sent[n.Hash] = n
	}
	for r, err := range db.nodes().rows(ctx, doubtful) {
		_, redacted := cas.AsRedacted(r.err)
		switch n := sent[r.Hash]; {
		case err != nil:
			return different, err
		case r.err != nil && !redacted:
			return different, r.err
		case redacted != (n.tombstone != nil):
			different = append(different, r.Hash)
		case !redacted && !r.Equal(n.Node):
			return different, &cas.CollisionError{Hash: r.Hash}
		}
	}
	return different, nil
}

// All implements [cas.Store].
func (db *DB) All(ctx context.Context, prefix string) iter.Seq2[cas.Hash, error] {
	const query = `select hash from nodes where hash > $1 and hash >= $2 and hash < $2 || '~' collate "C" order by hash limit $3`
	return pages(func(last string) (page []cas.Hash, err error) {
		if strings.Trim(prefix, "0123456789ABCDEFGHJKMNPQRSTVWXYZ") != "" {
			return nil, ctx.Err() // no hash has such a prefix
		}
		err = db.try(ctx, func(ctx context.Context) error {
			rows, err := db.pool.Query(ctx, query, last, prefix, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowTo[cas.Hash])
			}
			return err
		})
		return page, err
	}, func(h cas.Hash) string { return string(h) }, pageRows)
}

// pages yields items page by page, each page starting after the last item of the one before. So no connection
// is held in between, and a lost connection loses nothing.
func pages[T any, K any](load func(after K) ([]T, error), key func(T) K, size int) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		var last K
		for {
			page, err := load(last)
			if err != nil {
				var none T
				yield(none, err)
				return
			}
			for _, v := range page {
				if !yield(v, nil) {
					return
				}
				last = key(v)
			}
			if len(page) < size {
				return
			}
		}
	}
}

func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, v := range all {
		out[i] = string(v)
	}
	return out
}

// isMissing reports whether err means that there is no node.
func isMissing(err error) bool { return errors.Is(err, cas.ErrNotFound) }
