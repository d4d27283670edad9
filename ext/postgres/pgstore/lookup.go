package pgstore

import (
	"context"
	"fmt"
	"iter"

	"github.com/jackc/pgx/v5"
)

// lookup reads rows of a table by key: nodes by hash, or objects by ID.
type lookup[K ~string, R any] struct {
	db       *DB
	key      string // key column
	table    string
	columns  string // columns that scan reads after the key; all null if the row is missing
	content  string // column that may be large
	scan     pgx.RowToFunc[R]
	keyOfRow func(R) K
}

// Limits of the result of one statement.
const (
	pageRows  = 4096
	pageBytes = 8 << 20 // a single row can be larger
)

// missing returns the keys without a row, in order.
func (l lookup[K, R]) missing(ctx context.Context, keys []K) (missing []K, err error) {
	query := fmt.Sprintf(`select o.key from unnest($1::text[]) with ordinality o(key, i)
		where not exists (select from %s x where x.%s = o.key) order by i`, l.table, l.key)
	err = l.db.try(ctx, func(ctx context.Context) error {
		rows, err := l.db.pool.Query(ctx, query, texts(keys))
		if err == nil {
			missing, err = pgx.CollectRows(rows, pgx.RowTo[K])
		}
		return err
	})
	return missing, err
}

// rows yields the rows of keys, in order. It holds no connection while the caller processes them.
func (l lookup[K, R]) rows(ctx context.Context, keys []K) iter.Seq2[R, error] {
	return func(yield func(R, error) bool) {
		for len(keys) > 0 {
			page, err := l.page(ctx, keys[:min(len(keys), pageRows)])
			if err != nil {
				var none R
				yield(none, err)
				return
			}
			for _, r := range page {
				if !yield(r, nil) {
					return
				}
			}
			keys = keys[len(page):]
		}
	}
}

// page reads the rows of the first keys: at least one, and as many as fit.
func (l lookup[K, R]) page(ctx context.Context, keys []K) (page []R, err error) {
	query := fmt.Sprintf(`select key, %[1]s from (
			select i, o.key, %[1]s, sum(octet_length(%[2]s)) over (order by i) as total
			from unnest($1::text[]) with ordinality o(key, i) left join %[3]s x on x.%[4]s = o.key
		) x where i = 1 or total is null or total <= $2 order by i`, l.columns, l.content, l.table, l.key)
	err = l.db.try(ctx, func(ctx context.Context) error {
		rows, err := l.db.pool.Query(ctx, query, large, texts(keys), pageBytes)
		if err == nil {
			page, err = pgx.CollectRows(rows, l.scan)
		}
		return err
	})
	if err == nil && (len(page) == 0 || len(page) > len(keys)) {
		return nil, fmt.Errorf("the database returned %d rows of %s for %d keys", len(page), l.table, len(keys))
	}
	for i := range page {
		if got := l.keyOfRow(page[i]); got != keys[i] {
			return nil, fmt.Errorf("the database returned %q of %s instead of %s", string(got), l.table, keys[i])
		}
	}
	return page, err
}

// batches splits a list into batches that fit into one statement, and yields each with its size.
func batches[T any](all []T, size func(T) int) iter.Seq2[[]T, int] {
	return func(yield func([]T, int) bool) {
		for len(all) > 0 {
			bytes, count := 0, 0
			for count < min(len(all), 1<<16) && (count == 0 || bytes+size(all[count]) <= pageBytes) {
				bytes, count = bytes+size(all[count]), count+1
			}
			if !yield(all[:count], bytes) {
				return
			}
			all = all[count:]
		}
	}
}

// A statement needs only one round trip if its parameters are sent as text and the server infers their types.
// This suits a process that makes a single step. But as text, bytes take twice the space, so large parameters
// are sent as binary, at the cost of another round trip for the types.
const (
	small = pgx.QueryExecModeExec
	large = pgx.QueryExecModeCacheStatement
)

// mode returns the mode for a statement with the given number of bytes.
func mode(bytes int) pgx.QueryExecMode {
	if bytes > 64<<10 {
		return large
	}
	return small
}
