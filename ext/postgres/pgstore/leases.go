package pgstore

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/remote"
)

// Leases are columns of heads. They start and expire on the database's clock, and a swap checks them in the
// row that it changes.

const leaseColumns = `fence, (extract(epoch from until) * 1000)::bigint, ceil(extract(epoch from until - clock_timestamp()) * 1000)::bigint`

// Take implements [remote.Remote]. If the response is lost, the lease is recognized by its number in the row.
func (r *Remote) Take(ctx context.Context, thread, holder string, duration time.Duration) (l remote.Lease, err error) {
	if err := checkTake(thread, holder, duration); err != nil {
		return l, err
	}
	const query = `update heads set holder = $2, fence = fence + 1, until = clock_timestamp() + $3::bigint * interval '1 ms', taken = $4
		where thread = $1 and coalesce(until <= clock_timestamp(), true) and taken is distinct from $4 returning ` + leaseColumns
	const look = `select taken is not distinct from $2 and until > clock_timestamp(), coalesce(holder, ''), ` + leaseColumns + ` from heads where thread = $1`
	n := number()
	err = r.db.try(ctx, func(ctx context.Context) error {
		for range 100 {
			l = remote.Lease{Thread: thread, Holder: holder}
			err := r.db.pool.QueryRow(ctx, query, thread, holder, duration.Milliseconds(), n).Scan(&l.Fence, &l.Until, &l.LeftMs)
			if tooHigh(err) {
				return invalid("the fencing token of thread %s is too large; while no worker has the thread, the "+
					"owner of the tables can reset it: update heads set fence = 0 where thread = '%s'", thread, thread)
			}
			if !errors.Is(err, pgx.ErrNoRows) {
				return err
			}
			var mine *bool
			var until, left *int64
			err = r.db.pool.QueryRow(ctx, look, thread, n).Scan(&mine, &l.Holder, &l.Fence, &until, &left)
			switch {
			case errors.Is(err, pgx.ErrNoRows):
				return r.absent(ctx, thread, fmt.Errorf("%w: %s", heads.ErrNoThread, thread))
			case err != nil:
				return err
			case until == nil || left == nil || *left <= 0:
				n = number() // it expired between the two statements
				continue
			}
			if l.Until, l.LeftMs = *until, *left; mine != nil && *mine {
				return nil
			}
			return &remote.LeasedError{Lease: l.Public()}
		}
		return fmt.Errorf("the lease of thread %s changes too often", thread)
	})
	if err != nil {
		return remote.Lease{}, err
	}
	return l, nil
}

// Renew implements [remote.Remote].
func (r *Remote) Renew(ctx context.Context, thread string, fence int64,
	duration time.Duration) (l remote.Lease, err error) {
	if err := remote.CheckDuration(thread, duration); err != nil {
		return l, err
	}
	const query = `update heads set until = clock_timestamp() + $3::bigint * interval '1 ms'
		where thread = $1 and fence = $2 and until > clock_timestamp() returning holder, ` + leaseColumns
	err = r.db.try(ctx, func(ctx context.Context) error {
		l = remote.Lease{Thread: thread}
		err := r.db.pool.QueryRow(ctx, query, thread, fence, duration.Milliseconds()).Scan(&l.Holder, &l.Fence, &l.Until,
			&l.LeftMs)
		if errors.Is(err, pgx.ErrNoRows) {
			return &remote.FenceError{Thread: thread, Fence: fence}
		}
		return err
	})
	if err != nil {
		return remote.Lease{}, err
	}
	return l, nil
}

// Release implements [remote.Remote].
func (r *Remote) Release(ctx context.Context, thread string, fence int64) error {
	return r.db.try(ctx, func(ctx context.Context) error {
		_, err := r.db.pool.Exec(ctx, `update heads set until = null where thread = $1 and fence = $2 and until is not null`, thread, fence)
		return err
	})
}
