package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Workflow implements [heads.Registry].
func (db *DB) Workflow(ctx context.Context, name string) (h protocol.Hash, err error) {
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return "", fmt.Errorf("%w: the name %q %s", heads.ErrNoWorkflow, name, problem)
	}
	err = db.try(ctx, func(ctx context.Context) error {
		err := db.pool.QueryRow(ctx, `select workflow from registry where name = $1`, name).Scan(&h)
		if errors.Is(err, pgx.ErrNoRows) || err == nil && !h.Valid() {
			return fmt.Errorf("%w: %s", heads.ErrNoWorkflow, name)
		}
		return err
	})
	return h, err
}

// Workflows implements [heads.Registry].
func (db *DB) Workflows(ctx context.Context) (names []heads.Named, err error) {
	err = db.try(ctx, func(ctx context.Context) error {
		rows, err := db.pool.Query(ctx, `select name, workflow from registry order by name`)
		if err != nil {
			return err
		}
		names, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (n heads.Named, err error) {
			err = row.Scan(&n.Name, &n.Hash)
			n.Problem = protocol.WorkflowNameProblem(n.Name)
			return n, err
		})
		return err
	})
	return names, err
}

// Register implements [heads.Registry].
func (db *DB) Register(ctx context.Context, name string, h protocol.Hash) error {
	if err := nameable(name, h); err != nil {
		return err
	}
	const query = `with known as materialized (select from done where change = $1), noted as (
			insert into done (change) select $1 where not exists (select from known)
		)
		insert into registry (name, workflow) select $2, $3 where not exists (select from known)
		on conflict (name) do update set workflow = excluded.workflow`
	n := number()
	return db.try(ctx, func(ctx context.Context) error {
		_, err := db.pool.Exec(ctx, query, n, name, string(h))
		if taken(err) {
			return nil
		}
		return err
	})
}

// nameError means that a name refers to another workflow than expected.
type nameError struct{ got protocol.Hash }

func (e *nameError) Error() string { return "the name refers to " + string(e.got) }

// rename sets the existing workflow of a name, if the current one is was ("" for none). Errors are
// [*nameError] and [cas.ErrNotFound].
func (db *DB) rename(ctx context.Context, name string, was, h protocol.Hash) error {
	const query = `with known as materialized (select from done where change = $1),
		there as materialized (select from nodes where hash = $4),
		begun as (
			insert into registry (name, workflow) select $2, $4
			where $3 = '' and not exists (select from known) and exists (select from there)
			on conflict do nothing returning name
		), moved as (
			update registry set workflow = $4 where name = $2 and workflow = $3 and not exists (select from known) and exists (select from there) returning name
		), noted as (
			insert into done (change) select $1 from (select from begun union all select from moved) x
		)
		select exists (select from known) or exists (select from begun) or exists (select from moved)`
	const look = `select exists (select from done where change = $1), exists (select from nodes where hash = $3),
		coalesce((select workflow from registry where name = $2), '')`
	n := number()
	return db.try(ctx, func(ctx context.Context) error {
		var made, there bool
		var got protocol.Hash
		err := db.locked(ctx, query, []any{n, name, string(was), string(h)}, func(row pgx.Row) error { return row.Scan(&made) })
		if err == nil && made || taken(err) {
			return nil
		}
		if err == nil {
			err = db.pool.QueryRow(ctx, look, n, name, string(h)).Scan(&made, &there, &got)
		}
		switch {
		case err != nil || made:
			return err
		case !there:
			return notFound(h)
		}
		return &nameError{got: got}
	})
}

func nameable(name string, h protocol.Hash) error {
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return invalid("the name %q %s", name, problem)
	}
	if !h.Valid() {
		return invalid("invalid workflow hash for name %q: %q", name, h)
	}
	return nil
}
