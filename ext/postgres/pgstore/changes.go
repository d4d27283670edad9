package pgstore

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// change is a change of an existing thread.
type change struct {
	thread   string
	was      protocol.Hash
	wasEnded bool
	head     protocol.Hash
	ended    *ended  // nil if it is active afterwards
	facts    *string // JSON; nil means unchanged
	fence    int64   // fencing token of the required lease; 0 if there must be none; or [anyLease]
	swept    int64   // see [sweptError]; or [anySweep]
}

// anySweep as the number of removals skips the check.
const anySweep = -1

// sweptError means that nodes were removed after the nodes of a change were checked. swept is the number of
// removals until then.
type sweptError struct{ swept int64 }

func (e *sweptError) Error() string { return "nodes were removed meanwhile" }

// upkeepKey is the advisory lock that changes hold shared, and an owner who removes something exclusively, as
// SQL.
const upkeepKey = `hashtextextended('uwf upkeep ' || current_schema(), 0)`

// lockShared holds the lock until the end of the transaction.
const lockShared = `select pg_advisory_xact_lock_shared(` + upkeepKey + `)`

// old is a condition for rows n whose last put is to be updated.
const old = `n.put < clock_timestamp() - interval '1 minute'`

// locked executes a statement with the lock. Unlike a statement that takes the lock itself, it sees everything
// that was committed before.
func (db *DB) locked(ctx context.Context, query string, args []any, scan func(row pgx.Row) error) error {
	both := &pgx.Batch{} // one transaction and one round trip
	both.Queue(lockShared)
	both.Queue(query, args...).QueryRow(scan)
	return db.pool.SendBatch(ctx, both).Close()
}

// anyLease as a fencing token skips the check for a lease.
const anyLease = -1

type ended struct {
	workflow    protocol.Hash
	status      protocol.Status
	completedAt int64
}

// standing is the state of a thread.
type standing struct {
	thread string
	head   protocol.Hash
	ended  *ended
	facts  []byte
	holder string
	fence  int64 // fencing token of the current lease; 0 if there is none
	until  int64 // expiry on the database's clock, Unix milliseconds
	left   int64 // milliseconds until expiry
}

// standsError means that a thread's state differs from the one that a change expects. is is nil if the thread
// doesn't exist.
type standsError struct {
	change change
	is     *standing
}

func (e *standsError) Error() string { return e.conflict().Error() }

// As converts it to the errors of [heads.Heads].
func (e *standsError) As(target any) bool {
	conflict, ok := target.(**heads.ConflictError)
	if ok {
		*conflict = e.conflict()
	}
	return ok
}

func (e *standsError) conflict() *heads.ConflictError {
	c := &heads.ConflictError{Thread: e.change.thread, Want: e.change.was}
	if e.is != nil && e.is.ended == nil {
		c.Got = e.is.head
	}
	return c
}

// fenceError means that the lease of a change has expired, or that another client has one.
type fenceError struct {
	change change
	is     standing
}

func (e *fenceError) Error() string { return "another worker holds thread " + e.change.thread }

// move makes a change in one statement: the comparison, the check of the lease, the swap, the facts, and the
// note that it was made. Errors are [*standsError] and [*fenceError].
func (db *DB) move(ctx context.Context, c change) error {
	const query = `with known as materialized (select from done where change = $1), moved as (
			update heads set head = $5, workflow = $6, status = $7, completed_at = $8,
				ended = case when $7::text is not null then nextval('endings') end
			where thread = $2 and head = $3 and (ended is not null) = $4 and not exists (select from known)
				and case $9::bigint when -1 then true when 0 then coalesce(until <= clock_timestamp(), true)
					else fence = $9 and coalesce(until > clock_timestamp(), false) end
				and ($11::bigint = -1 or (select swept from format) = $11)
			returning thread
		), noted as (
			insert into done (change) select $1 from moved
		), learned as (
			insert into facts (thread, facts) select thread, $10::jsonb from moved where $10::jsonb is not null
			on conflict (thread) do update set facts = facts.facts || excluded.facts
		)
		select exists (select from moved)`
	var workflow, status *string
	var completedAt *int64
	if c.ended != nil {
		workflow, status, completedAt = (*string)(&c.ended.workflow), (*string)(&c.ended.status), &c.ended.completedAt
	}
	n := number()
	err := db.try(ctx, func(ctx context.Context) error {
		for range 100 {
			var moved bool
			err := db.locked(ctx, query, []any{n, c.thread, string(c.was), c.wasEnded, string(c.head), workflow, status,
				completedAt, c.fence, c.facts, c.swept}, func(row pgx.Row) error { return row.Scan(&moved) })
			if err == nil && moved || taken(err) { // taken: an earlier try was committed while this one ran
				return nil
			}
			if err != nil {
				return err
			}
			// Only a new statement can see what prevented the change, or that it was made before.
			if again, err := db.obstacle(ctx, n, c); !again || err != nil {
				return err
			}
		}
		return fmt.Errorf("thread %s changes too often", c.thread)
	})
	db.sweep(ctx, n, err)
	return err
}

// obstacle returns why a change was not made, or nil if an earlier try made it. again means that nothing
// prevents it any longer.
func (db *DB) obstacle(ctx context.Context, n pgtype.UUID, c change) (again bool, err error) {
	made, is, err := db.look(ctx, n, c.thread)
	switch {
	case err != nil || made:
		return false, err
	case is == nil || is.head != c.was || (is.ended != nil) != c.wasEnded:
		return false, &standsError{change: c, is: is}
	case c.fence == 0 && is.fence != 0, c.fence > 0 && c.fence != is.fence:
		return false, &fenceError{change: c, is: *is}
	}
	return true, db.isSwept(ctx, c.swept)
}

// isSwept returns a [*sweptError] if nodes were removed after a state.
func (db *DB) isSwept(ctx context.Context, swept int64) error {
	var now int64
	err := db.pool.QueryRow(ctx, `select swept from format`).Scan(&now)
	if err == nil && swept != anySweep && now != swept {
		err = &sweptError{now}
	}
	return err
}

// look reads whether a change was made, and the state of its thread, which is nil if it doesn't exist.
func (db *DB) look(ctx context.Context, n pgtype.UUID, thread string) (made bool, is *standing, err error) {
	const query = `select exists (select from done where change = $1), ` + standingColumns + `
		from (select) one left join heads h on h.thread = $2 left join facts f using (thread)`
	rows, err := db.pool.Query(ctx, query, n, thread)
	if err != nil {
		return false, nil, err
	}
	r, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[standingRow])
	return r.Made, r.standing(), err
}

// standing returns the state of a thread, or [heads.ErrNoThread].
func (db *DB) standing(ctx context.Context, thread string) (s standing, err error) {
	err = db.try(ctx, func(ctx context.Context) error {
		_, is, err := db.look(ctx, pgtype.UUID{}, thread)
		switch {
		case err != nil:
			return err
		case is == nil:
			return fmt.Errorf("%w: %s", heads.ErrNoThread, thread)
		}
		s = *is
		return nil
	})
	return s, err
}

// standingColumns are the columns that [standingRow] reads after the first.
const standingColumns = `h.thread, h.head, h.workflow, h.status, h.completed_at, f.facts, h.holder, h.fence,
	(extract(epoch from h.until) * 1000)::bigint, ceil(extract(epoch from h.until - clock_timestamp()) * 1000)::bigint`

type standingRow struct {
	Made                           bool
	Thread, Head, Workflow, Status *string
	CompletedAt                    *int64
	Facts                          []byte
	Holder                         *string
	Fence, Until, Left             *int64
}

func (r standingRow) standing() *standing {
	if r.Thread == nil || r.Head == nil {
		return nil
	}
	s := &standing{thread: *r.Thread, head: protocol.Hash(*r.Head), facts: r.Facts}
	if r.Workflow != nil && r.Status != nil && r.CompletedAt != nil {
		s.ended = &ended{protocol.Hash(*r.Workflow), protocol.Status(*r.Status), *r.CompletedAt}
	}
	if r.Holder != nil && r.Fence != nil && r.Until != nil && r.Left != nil && *r.Left > 0 {
		s.holder, s.fence, s.until, s.left = *r.Holder, *r.Fence, *r.Until, *r.Left
	}
	return s
}

// beginning is a thread to add.
type beginning struct {
	thread string
	head   protocol.Hash
	ended  *ended
	facts  *string // see [change]
}

// begin adds threads, all or none, in one statement. Errors are [heads.ErrExists], [*remote.GoneError], and
// [*sweptError] unless swept is [anySweep].
func (db *DB) begin(ctx context.Context, all []beginning, swept int64) error {
	if len(all) == 0 {
		return ctx.Err()
	}
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b beginning) int { return strings.Compare(a.thread, b.thread) })
	const query = `with given as materialized (
			select * from unnest($2::text[], $3::text[], $4::text[], $5::text[], $6::bigint[], $7::jsonb[])
				as g(thread, head, workflow, status, completed_at, facts)
		), removed as materialized (
			select g.thread from given g where exists (
				select from gone x where x.thread = g.thread or x.thread = g.facts->'parent'->>'thread')
		), valid as materialized (
			select where not exists (select from removed) and ($8::bigint = -1 or (select swept from format) = $8)
		), noted as (
			insert into done (change) select $1::uuid from valid
		), begun as (
			insert into heads (thread, head, workflow, status, completed_at, ended)
			select thread, head, workflow, status, completed_at, case when status is not null then nextval('endings') end
			from given, valid
		), learned as (
			insert into facts (thread, facts) select thread, facts from given, valid where facts is not null
			on conflict (thread) do update set facts = facts.facts || excluded.facts
		)
		select exists (select from valid), coalesce((select min(thread) from removed), '')`
	threads, hashes, facts := make([]string, len(all)), make([]string, len(all)), make([]*string, len(all))
	workflows, statuses, completed := make([]*string, len(all)), make([]*string, len(all)), make([]*int64, len(all))
	for i, t := range all {
		threads[i], hashes[i], facts[i] = t.thread, string(t.head), t.facts
		if e := t.ended; e != nil {
			workflows[i], statuses[i], completed[i] = (*string)(&e.workflow), (*string)(&e.status), &e.completedAt
		}
	}
	n := number()
	err := db.try(ctx, func(ctx context.Context) error {
		var begun bool
		var removed string
		err := db.locked(ctx, query, []any{n, threads, hashes, workflows, statuses, completed, facts, swept},
			func(row pgx.Row) error { return row.Scan(&begun, &removed) })
		switch {
		case err == nil && removed != "":
			return &remote.GoneError{Thread: removed}
		case err == nil && !begun:
			return db.isSwept(ctx, swept)
		case !taken(err):
			return err
		}
		made, is, err := db.look(ctx, n, threads[0])
		if err != nil || made {
			return err
		}
		name := threads[0]
		for i := 1; is == nil && i < len(threads); i++ {
			name = threads[i]
			if _, is, err = db.look(ctx, n, name); err != nil {
				return err
			}
		}
		return fmt.Errorf("thread %s %w", name, heads.ErrExists)
	})
	db.sweep(ctx, n, err)
	return err
}

// sweep occasionally removes old notes of changes, which no try needs any longer.
func (db *DB) sweep(ctx context.Context, n pgtype.UUID, err error) {
	if err == nil && n.Bytes[0] == 0 && n.Bytes[1] < 16 {
		_, _ = db.pool.Exec(ctx, `delete from done where at < clock_timestamp() - interval '1 hour'`) // on failure, a later change sweeps
	}
}
