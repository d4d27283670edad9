package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
)

// Owner does the upkeep of a schema while others use it, as the owner of its tables. The interfaces of gc, fsck,
// prune, redact and seal describe most of its methods.
type Owner struct{ *DB }

var (
	_ gc.Store      = Owner{}
	_ fsck.Store    = Owner{}
	_ bundle.Source = Owner{}
	_ prune.Index   = Owner{}
	_ redact.Store  = Owner{}
	_ seal.Store    = Owner{}
)

// Owner returns the upkeep of the schema.
func (db *DB) Owner() Owner { return Owner{db} }

// alone runs change in a transaction while no other client changes anything. Reads by change outside of the
// transaction see everything that was changed before at, a time of the database's clock.
func (o Owner) alone(ctx context.Context, change func(tx pgx.Tx, at time.Time) error) error {
	return pgx.BeginFunc(ctx, o.pool, func(tx pgx.Tx) error {
		// If this process is stopped, the server ends the transaction, so that others can continue.
		if _, err := tx.Exec(ctx, `set local idle_in_transaction_session_timeout = '1min'`); err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+upkeepKey+`)`); err != nil {
			return err
		}
		var at time.Time
		if err := tx.QueryRow(ctx, `select clock_timestamp()`).Scan(&at); err != nil {
			return err
		}
		return change(tx, at)
	})
}

// Now returns the time of the database's clock.
func (o Owner) Now(ctx context.Context) (at time.Time, err error) {
	err = o.try(ctx, func(ctx context.Context) error {
		return o.pool.QueryRow(ctx, `select clock_timestamp()`).Scan(&at)
	})
	return at, err
}

// Removed is the result of [Owner.Remove].
type Removed struct {
	Threads []string `json:"threads"` // with their children
}

// Remove removes threads with their children for good. Their nodes stay until the next collection. Removing a
// thread again is no error. The error is [heads.ErrNoThread].
func (o Owner) Remove(ctx context.Context, threads ...string) (Removed, error) {
	const query = `with recursive family(thread) as (
			select unnest($1::text[]) collate "C"
			union select f.thread from facts f join family on f.facts->'parent'->>'thread' = family.thread
		), heads_gone as (
			delete from heads h using family where h.thread = family.thread returning h.thread
		), facts_gone as (
			delete from facts f using family where f.thread = family.thread
		), noted as (
			insert into gone (thread) select thread from heads_gone on conflict do nothing
		)
		select coalesce(array_agg(thread order by thread), '{}') from heads_gone`
	out := Removed{}
	err := o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(tx pgx.Tx, _ time.Time) error {
			var unknown []string
			const look = `select coalesce(array_agg(t), '{}') from unnest($1::text[]) t where not exists (
				select from heads h where h.thread = t) and not exists (select from gone g where g.thread = t)`
			if err := tx.QueryRow(ctx, look, threads).Scan(&unknown); err != nil {
				return err
			}
			if len(unknown) > 0 {
				return fmt.Errorf("%w: %s", heads.ErrNoThread, unknown[0])
			}
			return tx.QueryRow(ctx, query, threads).Scan(&out.Threads)
		})
	})
	return out, err
}

// Forget implements [prune.Index]. Like removed threads, forgotten ones aren't accepted again. It ignores threads
// that somebody has leased.
func (o Owner) Forget(ctx context.Context, threads map[string]bool) (forgotten []heads.Ended, err error) {
	const query = `with heads_gone as (
			delete from heads where thread = any($1) and ended is not null and coalesce(until <= clock_timestamp(), true)
			returning thread, workflow, head, status, completed_at
		), facts_gone as (
			delete from facts f using heads_gone h where f.thread = h.thread
		), noted as (
			insert into gone (thread) select thread from heads_gone on conflict do nothing
		)
		select * from heads_gone order by thread`
	err = o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(tx pgx.Tx, _ time.Time) error {
			rows, err := tx.Query(ctx, query, slices.Collect(maps.Keys(threads)))
			if err == nil {
				forgotten, err = pgx.CollectRows(rows, pgx.RowToStructByPos[heads.Ended])
			}
			return err
		})
	})
	return forgotten, err
}

// Originals implements [gc.Store].
func (o Owner) Originals() bool { return false }

// Exists implements [fsck.Store].
func (o Owner) Exists() bool { return true }

// Dir implements [gc.Store].
func (o Owner) Dir() string { return "the database" }

// Where implements [fsck.Store].
func (o Owner) Where(h cas.Hash) string { return "table nodes, hash " + string(h) }

// SealPlace implements [fsck.Store].
func (o Owner) SealPlace(h cas.Hash) string { return "table seals, hash " + string(h) }

// Checked implements [fsck.Store].
func (o Owner) Checked() error { return nil }

// Generation implements [fsck.Store].
func (o Owner) Generation() (swept string, err error) {
	ctx := context.Background() // each try has a time limit
	err = o.try(ctx, func(ctx context.Context) error {
		return o.pool.QueryRow(ctx, `select swept::text from format`).Scan(&swept)
	})
	return swept, err
}

// collectKey is the advisory lock that a collection holds, as SQL.
const collectKey = `hashtextextended('uwf gc ' || current_schema(), 0)`

// LockShared implements [cas.SharedLocker]. It keeps collections away, but not changes.
func (o Owner) LockShared(ctx context.Context) (release func() error, err error) {
	return o.session(ctx, `select pg_advisory_lock_shared(`+collectKey+`)`, `select pg_advisory_unlock_shared(`+collectKey+`)`)
}

// session executes lock on a connection of its own, and unlock when it is released.
func (o Owner) session(ctx context.Context, lock, unlock string) (release func() error, err error) {
	var conn *pgxpool.Conn
	err = o.try(ctx, func(ctx context.Context) error {
		if conn, err = o.pool.Acquire(ctx); err != nil {
			return err
		}
		if _, err = conn.Exec(ctx, lock); err != nil {
			conn.Release()
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return func() error {
		ctx, stop := context.WithTimeout(context.Background(), attempt)
		defer stop()
		defer conn.Release()
		_, err := conn.Exec(ctx, unlock)
		if lost(err) {
			return nil // the lock ended with the connection
		}
		return err
	}, nil
}

// Seal implements [seal.Store].
func (o Owner) Seal(h cas.Hash) (s cas.Seal, err error) {
	ctx := context.Background() // each try has a time limit
	err = o.try(ctx, func(ctx context.Context) error {
		var sum []byte
		err := o.pool.QueryRow(ctx, `select seal from seals where hash = $1`, string(h)).Scan(&sum)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil && copy(s[:], sum) < len(s) {
			err = &cas.SealError{Hash: h}
		}
		return err
	})
	return s, err
}

// KeepSeals implements [seal.Store].
func (o Owner) KeepSeals(ctx context.Context, seals map[cas.Hash]cas.Seal) error {
	const query = `with given as (select * from unnest($1::text[], $2::bytea[]) as g(hash, seal)), fresh as (
			insert into seals (hash, seal) select * from given on conflict (hash) do nothing
		)
		select coalesce((select min(g.hash) from given g join seals s using (hash) where s.seal <> g.seal), '')`
	var hashes []string
	var sums [][]byte
	for h, s := range seals {
		hashes, sums = append(hashes, string(h)), append(sums, slices.Clone(s[:]))
	}
	return o.try(ctx, func(ctx context.Context) error {
		var other cas.Hash
		err := o.pool.QueryRow(ctx, query, large, hashes, sums).Scan(&other)
		if err == nil && other != "" {
			err = &cas.SealError{Hash: other, Got: seals[other]}
		}
		return err
	})
}

// Seals implements [gc.Store].
func (o Owner) Seals(ctx context.Context) iter.Seq2[cas.Hash, error] {
	return pages(func(after string) (page []cas.Hash, err error) {
		err = o.try(ctx, func(ctx context.Context) error {
			rows, err := o.pool.Query(ctx, `select hash from seals where hash > $1 order by hash limit $2`, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowTo[cas.Hash])
			}
			return err
		})
		return page, err
	}, func(h cas.Hash) string { return string(h) }, pageRows)
}

// Quarantine implements [fsck.Store].
func (o Owner) Quarantine(ctx context.Context, h cas.Hash) (string, error) {
	const query = `with bad as (delete from nodes where hash = $1 returning hash, type, payload, stored, tombstone)
		insert into quarantine (hash, type, payload, stored, tombstone) select * from bad`
	return "table quarantine", o.removing(ctx, query, string(h))
}

// QuarantineSeal implements [fsck.Store].
func (o Owner) QuarantineSeal(ctx context.Context, h cas.Hash) (string, error) {
	const query = `with bad as (delete from seals where hash = $1 returning hash, seal)
		insert into quarantine (hash, seal) select * from bad`
	return "table quarantine", o.removing(ctx, query, string(h))
}

// removing executes a statement that removes rows.
func (o Owner) removing(ctx context.Context, query string, args ...any) error {
	return o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(tx pgx.Tx, _ time.Time) error {
			if _, err := tx.Exec(ctx, query, args...); err != nil {
				return err
			}
			return swept(ctx, tx)
		})
	})
}

// swept counts a removal of nodes, so that nobody relies on a check made before it.
func swept(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, `update format set swept = swept + 1`)
	return err
}

// Redact implements [redact.Store]. thread of the redactions that homes receive is set by [Owner.RedactNode].
func (o Owner) Redact(ctx context.Context, check func() error, tombstones ...cas.Tombstone) error {
	return o.redactOf(ctx, "", check, tombstones)
}

func (o Owner) redactOf(ctx context.Context, thread string, check func() error, tombstones []cas.Tombstone) error {
	const query = `with buried as (
			update nodes set payload = null, tombstone = $2, stored = $3, put = clock_timestamp() where hash = $1 returning hash
		)
		insert into redactions (thread, hash) select $4, hash from buried
		where not exists (select from redactions where hash = $1)`
	err := o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(tx pgx.Tx, _ time.Time) error {
			if err := check(); err != nil {
				return err
			}
			for _, t := range tombstones {
				t.Foreign = false // redactions reach homes from here
				file, err := cas.MarshalTombstone(t)
				if err != nil {
					return err
				}
				if _, err := tx.Exec(ctx, query, large, string(t.Hash), file, t.At, thread); err != nil {
					return err
				}
			}
			return swept(ctx, tx)
		})
	})
	return errors.Join(err, o.vacuum(ctx, err, "nodes"))
}

// vacuum frees the space of removed rows of a table, unless err is not nil.
func (o Owner) vacuum(ctx context.Context, err error, table string) error {
	if err != nil {
		return nil
	}
	return o.try(ctx, func(ctx context.Context) error {
		_, err := o.pool.Exec(ctx, `vacuum `+pgx.Identifier{table}.Sanitize())
		return err
	})
}

// RedactNode redacts a node of a thread; see [redact.Node].
func (o Owner) RedactNode(ctx context.Context, thread string, h cas.Hash, options redact.Options) (redact.Done, error) {
	return redact.Node(ctx, redacting{o, thread}, o.DB, thread, h, options)
}

// redacting notes the thread in redactions.
type redacting struct {
	Owner
	thread string
}

// Redact implements [redact.Store].
func (r redacting) Redact(ctx context.Context, check func() error, tombstones ...cas.Tombstone) error {
	return r.redactOf(ctx, r.thread, check, tombstones)
}

// Stats describes the size of a schema.
type Stats struct {
	Threads      int64 `json:"threads"` // active ones; Ended have ended
	Ended        int64 `json:"ended"`
	Removed      int64 `json:"removed"`
	Nodes        int64 `json:"nodes"`
	NodeBytes    int64 `json:"nodeBytes"` // on disk, with indexes
	Objects      int64 `json:"objects"`
	ObjectBytes  int64 `json:"objectBytes"`
	Redactions   int64 `json:"redactions"`
	Seals        int64 `json:"seals"`
	Quarantine   int64 `json:"quarantine"`
	DatabaseSize int64 `json:"databaseBytes"`
}

// Stats counts what the schema contains.
func (o Owner) Stats(ctx context.Context) (s Stats, err error) {
	const query = `select (select count(*) from heads where ended is null), (select count(*) from heads where ended is not null),
		(select count(*) from gone), (select count(*) from nodes), pg_total_relation_size('nodes'),
		(select count(*) from objects), pg_total_relation_size('objects'), (select count(*) from redactions),
		(select count(*) from seals), (select count(*) from quarantine), pg_database_size(current_database())`
	err = o.try(ctx, func(ctx context.Context) error {
		rows, err := o.pool.Query(ctx, query)
		if err == nil {
			s, err = pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[Stats])
		}
		return err
	})
	return s, err
}

// compaction implements [cas.Compaction].
type compaction struct {
	Owner
	release func() error
	dry     bool
	// since is a time before which everything was listed or rechecked. The first slice always rechecks, because
	// the notes of changes may have been removed since.
	since     time.Time
	rechecked bool
	found     []uint64
	garbage   []cas.Hash
}

// sweepRows is the maximum number of rows removed at once, while others wait. A removal takes some 10 ms.
const sweepRows = 1000

// Compact implements [cas.Compactor].
func (o Owner) Compact(ctx context.Context, _ time.Time, dry bool) (cas.Compaction, error) {
	release, err := o.lockUpkeep(ctx)
	if err != nil {
		return nil, err
	}
	c := &compaction{Owner: o, release: release, dry: dry}
	if c.since, err = o.barrier(ctx); err != nil {
		return nil, errors.Join(err, release())
	}
	return c, nil
}

// lockUpkeep waits until no other process collects garbage.
func (o Owner) lockUpkeep(ctx context.Context) (release func() error, err error) {
	return o.session(ctx, `select pg_advisory_lock(`+collectKey+`)`, `select pg_advisory_unlock(`+collectKey+`)`)
}

// barrier returns a time before which all changes are visible.
func (o Owner) barrier(ctx context.Context) (at time.Time, err error) {
	err = o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(_ pgx.Tx, now time.Time) error {
			at = now
			return nil
		})
	})
	return at, err
}

// Nodes implements [cas.Compaction].
func (c *compaction) Nodes(ctx context.Context) iter.Seq2[cas.Item, error] {
	const query = `select hash, octet_length(coalesce(payload, tombstone)), put, tombstone is not null from nodes
		where hash > $1 order by hash limit $2`
	items := pages(func(after string) (page []cas.Item, err error) {
		err = c.try(ctx, func(ctx context.Context) error {
			rows, err := c.pool.Query(ctx, query, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[cas.Item])
			}
			return err
		})
		return page, err
	}, func(i cas.Item) string { return string(i.Hash) }, pageRows)
	return func(yield func(cas.Item, error) bool) {
		c.found = nil
		for i, err := range items {
			if err == nil {
				c.found = append(c.found, i.Hash.Number())
			}
			if !yield(i, err) {
				return
			}
		}
	}
}

// New implements [cas.Compaction].
func (c *compaction) New(ctx context.Context) iter.Seq2[cas.Hash, error] {
	return pages(func(after string) (page []cas.Hash, err error) {
		err = c.try(ctx, func(ctx context.Context) error {
			rows, err := c.pool.Query(ctx, `select hash from nodes where put >= $1 and hash > $2 order by hash limit $3`,
				c.since, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowTo[cas.Hash])
			}
			return err
		})
		return page, err
	}, func(h cas.Hash) string { return string(h) }, pageRows)
}

// Write implements [cas.Compaction].
func (c *compaction) Write(ctx context.Context, keep func(cas.Hash) bool) error {
	for _, n := range c.found {
		if h := protocol.HashOf(n); !keep(h) {
			c.garbage = append(c.garbage, h)
		}
	}
	c.found = nil
	return ctx.Err()
}

// Finish implements [cas.Compaction]. It stops writers for one slice of the nodes at a time, and rechecks if they
// have changed anything in between.
func (c *compaction) Finish(ctx context.Context, recheck func() error, keep func(cas.Hash) bool) error {
	if c.dry {
		return errors.New("a dry compaction cannot be finished")
	}
	const query = `with swept as (delete from nodes where hash = any($1))
		delete from seals where hash = any($1)`
	for part := range slices.Chunk(c.garbage, sweepRows) {
		err := c.slice(ctx, recheck, func(tx pgx.Tx) error {
			part := slices.DeleteFunc(slices.Clone(part), keep)
			if len(part) == 0 {
				return nil
			}
			if _, err := tx.Exec(ctx, query, texts(part)); err != nil {
				return err
			}
			return swept(ctx, tx)
		})
		if err != nil {
			return err
		}
	}
	return c.vacuum(ctx, nil, "nodes")
}

// slice calls remove while no other client changes anything, after recheck if something has changed since the last
// time. If the connection is lost, it begins again.
func (c *compaction) slice(ctx context.Context, recheck func() error, remove func(pgx.Tx) error) error {
	return c.try(ctx, func(ctx context.Context) error {
		return c.alone(ctx, func(tx pgx.Tx, at time.Time) error {
			changed, err := c.changed(ctx, tx, c.since)
			if err == nil && (changed || !c.rechecked) {
				err = recheck()
			}
			if err != nil {
				return err
			}
			c.rechecked, c.since = true, at
			return remove(tx)
		})
	})
}

// Release implements [cas.Compaction].
func (c *compaction) Release() error { return c.release() }
