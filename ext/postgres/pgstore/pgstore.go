// Package pgstore keeps nodes, heads, facts, names, leases and the objects of files in
// Postgres: [DB] is a [cas.Store], a [heads.Heads], a [heads.Registry], and, by [DB.Remote],
// a remote.
//
// Invariants:
//   - each change is one statement, and durable when the method returns;
//   - one whose answer was lost with the connection is asked again under the number
//     that it has in the table done, so it is made once;
//   - a head moves together with the look at its lease, in the same row;
//   - whatever is read is held against its hash: a database is a stranger.
package pgstore

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/util/secret"
)

// DB is one schema of a database. It is safe for concurrent use.
type DB struct {
	pool     *pgxpool.Pool
	kinds    *cas.Kinds
	a        cas.Algorithm
	patience time.Duration
	secrets  *secret.Set
	recent   recent
}

var (
	_ cas.Store      = (*DB)(nil)
	_ heads.Heads    = (*DB)(nil)
	_ heads.Registry = (*DB)(nil)
)

// Options of [Open]. The zero value works.
type Options struct {
	// Patience is for how long something is tried again when the database is gone; 0:
	// half a minute.
	Patience time.Duration
	// Hash is the hash function of a schema that is made; "": XXH3.
	Hash cas.Algorithm
}

// Open connects to a database: postgres://user@host/database?schema=uwf, see
// [Config]. A schema that is not there yet is made, where the role may do so. Errors:
// [*protocol.Error] for an address or a schema that cannot be used.
func Open(ctx context.Context, address string, o Options) (*DB, error) {
	if o.Patience == 0 {
		o.Patience = 30 * time.Second
	}
	if o.Hash == "" {
		o.Hash = cas.XXH3
	}
	config, err := Config(address)
	if err != nil {
		return nil, err
	}
	db := &DB{patience: min(o.Patience, connecting), secrets: secretsOf(config)}
	var found atomic.Pointer[format]
	config.pool.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		f, err := config.enter(ctx, conn)
		found.Store(&f)
		return err
	}
	if db.pool, err = pgxpool.NewWithConfig(ctx, config.pool); err != nil {
		return nil, db.shown(err)
	}
	err = db.try(ctx, func(ctx context.Context) error {
		err := db.enter(ctx)
		if errors.Is(err, errNoSchema) {
			if _, err := migrate(ctx, config, o.Hash); err != nil {
				return err
			}
			err = db.enter(ctx)
		}
		return err
	})
	if err != nil {
		db.pool.Close()
		return nil, err
	}
	db.a, db.patience = found.Load().hash, o.Patience
	db.kinds = cas.NewKinds(db.a)
	return db, nil
}

// connecting is how long at most [Open] tries: a wrong address should be told soon.
const connecting = 5 * time.Second

// enter makes a connection, or finds one.
func (db *DB) enter(ctx context.Context) error {
	conn, err := db.pool.Acquire(ctx)
	if err == nil {
		conn.Release()
	}
	return err
}

// Close closes all connections.
func (db *DB) Close() error {
	db.pool.Close()
	return nil
}

// Algorithm implements [cas.Reader].
func (db *DB) Algorithm() cas.Algorithm { return db.a }

// Kinds implements [cas.Reader].
func (db *DB) Kinds() *cas.Kinds { return db.kinds }
