// Package pgstore stores nodes, heads, facts, names, leases and the objects of files in Postgres. [DB] is a
// [cas.Store], a [heads.Heads] and a [heads.Registry], and [DB.Remote] returns it as a remote.
//
// Invariants:
//   - Each change is one statement, and is durable when the method returns.
//   - A change whose response was lost with the connection is repeated under its number in the table done, so it is
//     made only once.
//   - A head moves in the same statement that checks its lease, in the same row.
//   - Changes hold the advisory lock [upkeepKey] shared. An owner who removes something ([Owner]) holds it
//     exclusively, for one slice of rows at a time, and counts the removals in format.swept. A swap that has
//     checked its nodes before a removal checks them again.
//   - Everything that is read is verified against its hash, because the database is not trusted.
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

// Options are the options of [Open]. The zero value is valid.
type Options struct {
	// Patience is the time for which operations are retried if the database is unreachable; 0 means 30
	// seconds.
	Patience time.Duration
	// Hash is the hash function of a new schema; "" means XXH3.
	Hash cas.Algorithm
	// Upkeep means that [DB.Owner] is used, which needs several connections whatever the address says.
	Upkeep bool
}

// upkeepConns is the number of connections of an upkeep: for its lock, a transaction, and reads.
const upkeepConns = 4

// Open connects to a database: postgres://user@host/database?schema=uwf, see [Config]. It creates a missing
// schema if the role has the permission. Errors are [*protocol.Error] for an unusable address or schema.
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
	if o.Upkeep {
		config.pool.MaxConns = max(config.pool.MaxConns, upkeepConns)
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
	db.recent.reset(found.Load().swept)
	db.kinds = cas.NewKinds(db.a)
	return db, nil
}

// connecting is the time for which [Open] tries to connect, so that a wrong address is reported soon.
const connecting = 5 * time.Second

// enter ensures that there is a connection.
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
