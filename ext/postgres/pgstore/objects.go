package pgstore

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// MissingObjects implements [remote.Remote].
func (r *Remote) MissingObjects(ctx context.Context, ids []protocol.Tree) (missing []protocol.Tree, err error) {
	if err := remote.CheckObjects(ids); err != nil || len(ids) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	const query = `select o.id from unnest($1::text[]) with ordinality o(id, i)
		where not exists (select from objects x where x.id = o.id) order by i`
	err = r.db.try(ctx, func(ctx context.Context) error {
		rows, err := r.db.pool.Query(ctx, query, texts(ids))
		if err == nil {
			missing, err = pgx.CollectRows(rows, pgx.RowTo[protocol.Tree])
		}
		return err
	})
	return missing, err
}

// GetObjects implements [remote.Remote].
func (r *Remote) GetObjects(ctx context.Context, ids []protocol.Tree) iter.Seq2[remote.Object, error] {
	return func(yield func(remote.Object, error) bool) {
		if err := errors.Join(ctx.Err(), remote.CheckObjects(ids)); err != nil {
			yield(remote.Object{}, err)
			return
		}
		for len(ids) > 0 {
			page, err := r.objectPage(ctx, ids[:min(len(ids), pageRows)])
			if err != nil {
				yield(remote.Object{}, err)
				return
			}
			for _, o := range page {
				err := error(&remote.MissingError{Hash: string(o.ID)})
				if o.Kind != 0 {
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
			ids = ids[len(page):]
		}
	}
}

// objectPage reads the first of the objects: at least one, and as many as fit. One that
// is not there has no kind.
func (r *Remote) objectPage(ctx context.Context, ids []protocol.Tree) (page []remote.Object, err error) {
	const query = `select id, kind, content from (
			select i, o.id, ascii(kind::text) as kind, content, sum(octet_length(content)) over (order by i) as total
			from unnest($1::text[]) with ordinality o(id, i) left join objects using (id)
		) x where i = 1 or total is null or total <= $2 order by i`
	err = r.db.try(ctx, func(ctx context.Context) error {
		rows, err := r.db.pool.Query(ctx, query, texts(ids), pageBytes)
		if err != nil {
			return err
		}
		page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o remote.Object, err error) {
			var kind *int
			if err = row.Scan(&o.ID, &kind, &o.Content); kind != nil {
				o.Kind = byte(*kind)
			}
			return o, err
		})
		return err
	})
	if err == nil && (len(page) == 0 || len(page) > len(ids)) {
		return nil, fmt.Errorf("the database answers with %d rows for %d objects", len(page), len(ids))
	}
	for i := range page {
		if page[i].ID != ids[i] {
			return nil, fmt.Errorf("the database answers with object %q where %s was asked for", page[i].ID, ids[i])
		}
	}
	return page, err
}

// PutObjects implements [remote.Remote].
func (r *Remote) PutObjects(ctx context.Context, objects []remote.Object) error {
	for _, o := range objects {
		if err := errors.Join(ctx.Err(), o.Check()); err != nil {
			return err
		}
	}
	// In one order, so that who puts the same does not wait for whoever waits for him.
	objects = slices.Clone(objects)
	slices.SortFunc(objects, func(a, b remote.Object) int { return strings.Compare(string(a.ID), string(b.ID)) })
	objects = slices.CompactFunc(objects, func(a, b remote.Object) bool { return a.ID == b.ID })
	for len(objects) > 0 {
		size, count := 0, 0
		for count < len(objects) && (count == 0 || size+len(objects[count].Content) <= pageBytes) {
			size, count = size+len(objects[count].Content), count+1
		}
		if err := r.putObjects(ctx, objects[:count]); err != nil {
			return err
		}
		objects = objects[count:]
	}
	return ctx.Err()
}

func (r *Remote) putObjects(ctx context.Context, objects []remote.Object) error {
	const query = `insert into objects (id, kind, content)
		select id, kind::"char", content from unnest($1::text[], $2::text[], $3::bytea[]) as g(id, kind, content) on conflict (id) do nothing`
	ids, kinds, contents := make([]string, len(objects)), make([]string, len(objects)), make([][]byte, len(objects))
	for i, o := range objects {
		if ids[i], kinds[i], contents[i] = string(o.ID), string(rune(o.Kind)), o.Content; o.Content == nil {
			contents[i] = []byte{}
		}
	}
	return r.db.try(ctx, func(ctx context.Context) error {
		_, err := r.db.pool.Exec(ctx, query, ids, kinds, contents)
		return err
	})
}
