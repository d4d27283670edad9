package pgstore

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Version is the schema version of this program.
const Version = 2

//go:embed schema.sql
var first string

//go:embed schema2.sql
var second string

// migration migrates the schema from the previous version. There are no downgrades.
type migration struct {
	sql    string
	oldest int // oldest program version that can work on the result
}

func migrations() []migration {
	return []migration{{sql: first, oldest: 1}, {sql: second, oldest: 2}} // version 1 doesn't know of removals
}

// format is the only row of its table.
type format struct {
	version, oldest int
	hash            cas.Algorithm
	swept           int64 // number of removals of nodes, since version 2
}

// errNoSchema means that the schema is missing or has no tables.
var errNoSchema = errors.New("the database has no uwf schema")

// check returns an error for a schema that this program doesn't support.
func (f format) check() error {
	switch {
	case f.oldest > Version:
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: fmt.Sprintf("the database schema has version %d, but this program supports %d; upgrade "+
				"uwf-remote-postgres", f.version, Version)}
	case f.version < Version:
		return invalid("the database schema has version %d, but this program needs %d; its owner must run "+
			"uwf-remote-postgres migrate", f.version, Version)
	case !f.hash.Known():
		return &protocol.Error{Code: protocol.CodeUnsupportedVersion,
			Message: fmt.Sprintf("unknown hash function %s in the database; upgrade uwf-remote-postgres",
				plaintext.Line(string(f.hash)))}
	}
	return nil
}

// lockKey is the advisory lock of a schema, as SQL. Clients share the lock, and a migration holds it
// exclusively. $1 is the name of the schema.
const lockKey = `hashtextextended('uwf schema ' || $1::text, 0)`

// enter initializes each connection. It waits for a running migration, and keeps others from starting until
// the connection ends. It overrides synchronous_commit=off, because the store promises durability.
func (a *Address) enter(ctx context.Context, conn *pgx.Conn) (f format, err error) {
	const lock = `select pg_advisory_lock_shared(` + lockKey + `), set_config('synchronous_commit',
		case current_setting('synchronous_commit') when 'off' then 'on' else current_setting('synchronous_commit') end, false)`
	both := &pgx.Batch{} // one round trip; the second statement runs after the first has the lock
	both.Queue(lock, a.Schema)
	both.Queue(`select version, oldest, hash, coalesce((to_jsonb(format)->>'swept')::bigint, 0) from format`).QueryRow(
		func(row pgx.Row) error { return row.Scan(&f.version, &f.oldest, &f.hash, &f.swept) })
	err = conn.SendBatch(ctx, both).Close()
	switch {
	case code(err) == "42P01" || code(err) == "3F000" || errors.Is(err, pgx.ErrNoRows):
		return f, errNoSchema
	case err != nil:
		return f, err
	}
	return f, f.check()
}

// Migrate creates the schema or migrates it to this program's version, and returns the versions before and
// after. No other client may be connected.
func Migrate(ctx context.Context, address string, hash cas.Algorithm) (from, to int, err error) {
	a, err := Config(address)
	if err != nil {
		return 0, 0, err
	}
	db := &DB{patience: connecting, secrets: secretsOf(a)}
	err = db.try(ctx, func(ctx context.Context) (err error) {
		from, err = migrate(ctx, a, hash)
		return err
	})
	return from, Version, err
}

func migrate(ctx context.Context, a *Address, hash cas.Algorithm) (from int, err error) {
	conn, err := pgx.ConnectConfig(ctx, a.pool.ConnConfig.Copy())
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, conn.Close(ctx)) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return 0, err
	}
	defer func() { _ = tx.Rollback(ctx) }() // no effect after a commit
	if err := a.alone(ctx, tx); err != nil {
		return 0, err
	}
	f, err := current(ctx, tx, a.Schema)
	if err != nil {
		return 0, err
	}
	if f.version >= Version {
		return f.version, f.check()
	}
	if f.version == 0 {
		f.hash = hash
	}
	from = f.version
	for _, m := range migrations()[f.version:] {
		if _, err := tx.Exec(ctx, m.sql, pgx.QueryExecModeSimpleProtocol); err != nil {
			return 0, refused(err, a)
		}
		f.oldest = m.oldest
	}
	const note = `insert into format (version, oldest, hash) values ($1, $2, $3)
		on conflict (one) do update set version = excluded.version, oldest = excluded.oldest`
	if _, err := tx.Exec(ctx, note, Version, f.oldest, string(f.hash)); err != nil {
		return 0, err
	}
	return from, tx.Commit(ctx)
}

// alone takes the lock of the schema exclusively for the transaction.
func (a *Address) alone(ctx context.Context, tx pgx.Tx) error {
	if _, err := tx.Exec(ctx, `set local lock_timeout = '5s'`); err != nil {
		return err
	}
	_, err := tx.Exec(ctx, `select pg_advisory_xact_lock(`+lockKey+`)`, a.Schema)
	if code(err) == "55P03" {
		return invalid("schema %s is in use; stop its clients first (pg_stat_activity lists them)",
			a.Schema)
	}
	return err
}

// current returns the current version, or 0 if there is none. It creates the schema if it is missing.
func current(ctx context.Context, tx pgx.Tx, schema string) (f format, err error) {
	var there, made bool
	const look = `select to_regnamespace($1) is not null, to_regclass($1 || '.format') is not null`
	if err := tx.QueryRow(ctx, look, schema).Scan(&there, &made); err != nil {
		return f, err
	}
	if made {
		err = tx.QueryRow(ctx, `select version, oldest, hash from format`).Scan(&f.version, &f.oldest, &f.hash)
		return f, err
	}
	if !there {
		_, err = tx.Exec(ctx, `create schema `+pgx.Identifier{schema}.Sanitize())
	}
	return f, refused(err, &Address{Schema: schema})
}

// refused returns the error for a role without the permission to create the schema, with a hint.
func refused(err error, a *Address) error {
	if code(err) != "42501" {
		return err
	}
	return invalid("schema %s is not set up, and this role cannot do it (%s); its owner must run "+
		"uwf-remote-postgres migrate", a.Schema, strings.TrimSpace(err.Error()))
}

// Setting returns the value of a server setting in our connections.
func (db *DB) Setting(ctx context.Context, name string) (value string, err error) {
	err = db.try(ctx, func(ctx context.Context) error {
		return db.pool.QueryRow(ctx, `select current_setting($1)`, name).Scan(&value)
	})
	return value, err
}
