package pgstore

import (
	"context"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

func (db *DB) objects() lookup[protocol.Tree, remote.Object] {
	return lookup[protocol.Tree, remote.Object]{
		db: db, table: "objects", key: "id", columns: "kind, content", content: "content", scan: scanObject,
		keyOfRow: func(o remote.Object) protocol.Tree { return o.ID },
	}
}

// scanObject reads an object. A missing object has no kind.
func scanObject(row pgx.CollectableRow) (o remote.Object, err error) {
	var kind *byte
	if err = row.Scan(&o.ID, &kind, &o.Content); kind != nil {
		o.Kind = *kind
	}
	return o, err
}

// redacted is the kind of objects whose content was redacted.
const redacted = 'r'

// MissingObjects implements [remote.Remote]. What exists becomes young, because the client relies on it.
func (r *Remote) MissingObjects(ctx context.Context, ids []protocol.Tree) ([]protocol.Tree, error) {
	if err := remote.CheckHashes(ids); err != nil || len(ids) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	const query = `with young as (
			update objects n set put = clock_timestamp() where n.id = any($1) and ` + old + `
		)
		select coalesce(array_agg(o.id order by i), '{}') from unnest($1::text[]) with ordinality o(id, i)
		where not exists (select from objects x where x.id = o.id)`
	var missing []protocol.Tree
	err := r.db.try(ctx, func(ctx context.Context) error {
		return r.db.locked(ctx, query, []any{texts(ids)}, func(row pgx.Row) error { return row.Scan(&missing) })
	})
	return missing, err
}

// GetObjects implements [remote.Remote].
func (r *Remote) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		if err := errors.Join(ctx.Err(), remote.CheckHashes(ids)); err != nil {
			yield(remote.Object{}, err)
			return
		}
		for o, err := range r.db.objects().rows(ctx, ids) {
			switch {
			case err != nil:
			case o.Kind == 0 || o.Kind == redacted:
				err = &remote.MissingError{Hash: string(o.ID)}
			default:
				err = o.Check()
			}
			if err != nil {
				yield(remote.Object{}, err)
				return
			}
			if !yield(o, nil) {
				return
			}
		}
	}
}

// PutObjects implements [remote.Remote].
func (r *Remote) PutObjects(ctx context.Context, objects []remote.Object) error {
	for _, o := range objects {
		if err := errors.Join(ctx.Err(), o.Check()); err != nil {
			return err
		}
	}
	// A common order prevents deadlocks between clients that put the same objects.
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b remote.Object) int { return strings.Compare(string(a.ID), string(b.ID)) })
	objects = slices.CompactFunc(objects, func(a, b remote.Object) bool { return a.ID == b.ID })
	for batch, bytes := range batches(objects, func(o remote.Object) int { return len(o.Content) }) {
		if err := r.putObjects(ctx, batch, mode(bytes)); err != nil {
			return err
		}
	}
	return ctx.Err()
}

func (r *Remote) putObjects(ctx context.Context, objects []remote.Object, mode pgx.QueryExecMode) error {
	const query = `with locked as materialized (` + lockShared + `), given as materialized (
			select g.* from locked, unnest($1::text[], $2::text[], $3::bytea[]) as g(id, kind, content)
		), young as (
			update objects n set put = clock_timestamp() from given g where n.id = g.id and ` + old + `
		)
		insert into objects (id, kind, content) select id, kind::"char", content from given on conflict (id) do nothing`
	ids, kinds, contents := make([]string, len(objects)), make([]string, len(objects)), make([][]byte, len(objects))
	for i, o := range objects {
		if ids[i], kinds[i], contents[i] = string(o.ID), string(rune(o.Kind)), o.Content; o.Content == nil {
			contents[i] = []byte{}
		}
	}
	return r.db.try(ctx, func(ctx context.Context) error {
		_, err := r.db.pool.Exec(ctx, query, mode, ids, kinds, contents)
		return err
	})
}
