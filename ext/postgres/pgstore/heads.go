package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
)

// Head implements [heads.Heads].
func (db *DB) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	s, err := db.standing(ctx, thread)
	if err == nil && s.ended != nil {
		err = fmt.Errorf("%w: %s is not active", heads.ErrNoThread, thread)
	}
	if err != nil {
		return "", err
	}
	return s.head, nil
}

// Heads implements [heads.Heads].
func (db *DB) Heads(ctx context.Context) iter.Seq2[heads.Head, error] {
	const query = `select thread, head from heads where thread > $1 and ended is null order by thread limit $2`
	return pages(func(after string) (page []heads.Head, err error) {
		err = db.try(ctx, func(ctx context.Context) error {
			rows, err := db.pool.Query(ctx, query, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[heads.Head])
			}
			return err
		})
		return page, err
	}, func(h heads.Head) string { return h.Thread }, pageRows)
}

// Add implements [heads.Heads].
func (db *DB) Add(ctx context.Context, thread string, head protocol.Hash, facts heads.Facts) error {
	return db.AddAll(ctx, []heads.New{{Head: heads.Head{Thread: thread, Hash: head}, Facts: facts}})
}

// AddAll implements [heads.Heads].
func (db *DB) AddAll(ctx context.Context, threads []heads.New) error {
	all := make([]beginning, 0, len(threads))
	for _, t := range threads {
		facts, err := encode(t.Facts)
		if err == nil {
			err = check(t.Thread, t.Hash)
		}
		if err != nil {
			return err
		}
		all = append(all, beginning{thread: t.Thread, head: t.Hash, facts: facts})
	}
	return db.begin(ctx, all, anySweep)
}

// Move implements [heads.Heads]. It doesn't check for a lease.
func (db *DB) Move(ctx context.Context, thread string, old, new protocol.Hash) error {
	if err := check(thread, new); err != nil {
		return err
	}
	return db.move(ctx, change{thread: thread, was: old, head: new, fence: anyLease, swept: anySweep})
}

// Archive implements [heads.Heads].
func (db *DB) Archive(ctx context.Context, e heads.Ended) error {
	if err := check(e.Thread, e.Head); err != nil {
		return err
	}
	if err := e.Check(); err != nil {
		return invalid("%v", err)
	}
	return db.move(ctx, change{thread: e.Thread, was: e.Head, head: e.Head, ended: &ended{e.Workflow, e.Status,
		e.CompletedAt}, fence: anyLease, swept: anySweep})
}

// Reopen implements [heads.Heads].
func (db *DB) Reopen(ctx context.Context, e heads.Ended, _ int64) error {
	err := db.move(ctx, change{thread: e.Thread, was: e.Head, wasEnded: true, head: e.Head, fence: anyLease, swept: anySweep})
	var stands *standsError
	switch {
	case !errors.As(err, &stands):
		return err
	case stands.is == nil:
		return fmt.Errorf("%w: %s", heads.ErrNoThread, e.Thread)
	case stands.is.ended == nil:
		return fmt.Errorf("thread %s %w", e.Thread, heads.ErrExists)
	}
	return &heads.ConflictError{Thread: e.Thread, Want: e.Head, Got: stands.is.head}
}

// Ended implements [heads.Heads].
func (db *DB) Ended(ctx context.Context, thread string) (heads.Ended, error) {
	s, err := db.standing(ctx, thread)
	if err == nil && s.ended == nil {
		err = fmt.Errorf("%w: %s has not ended", heads.ErrNoThread, thread)
	}
	if err != nil {
		return heads.Ended{}, err
	}
	return heads.Ended{Thread: thread, Workflow: s.ended.workflow, Head: s.head, Status: s.ended.status,
		CompletedAt: s.ended.completedAt}, nil
}

// History implements [heads.Heads]. A thread that is reopened and ends again during the iteration can appear
// twice.
func (db *DB) History(ctx context.Context) iter.Seq2[heads.Ended, error] {
	type entry struct {
		heads.Ended
		Order int64
	}
	const query = `select thread, workflow, head, status, completed_at, ended from heads where ended > $1 order by ended limit $2`
	entries := pages(func(after int64) (page []entry, err error) {
		err = db.try(ctx, func(ctx context.Context) error {
			rows, err := db.pool.Query(ctx, query, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
			}
			return err
		})
		return page, err
	}, func(e entry) int64 { return e.Order }, pageRows)
	return func(yield func(heads.Ended, error) bool) {
		for e, err := range entries {
			if !yield(e.Ended, err) {
				return
			}
		}
	}
}

// Facts implements [heads.Heads].
func (db *DB) Facts(ctx context.Context, thread string) (f heads.Facts, err error) {
	err = db.try(ctx, func(ctx context.Context) error {
		var data []byte
		err := db.pool.QueryRow(ctx, `select facts from facts where thread = $1`, thread).Scan(&data)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		if err == nil {
			f, err = decode(thread, data)
		}
		return err
	})
	return f, err
}

// AllFacts implements [heads.Heads].
func (db *DB) AllFacts(ctx context.Context) (map[string]heads.Facts, error) {
	type entry struct {
		Thread string
		Facts  []byte
	}
	const query = `select thread, facts from facts where thread > $1 order by thread limit $2`
	all := map[string]heads.Facts{}
	var faults []error
	for e, err := range pages(func(after string) (page []entry, err error) {
		err = db.try(ctx, func(ctx context.Context) error {
			rows, err := db.pool.Query(ctx, query, after, pageRows)
			if err == nil {
				page, err = pgx.CollectRows(rows, pgx.RowToStructByPos[entry])
			}
			return err
		})
		return page, err
	}, func(e entry) string { return e.Thread }, pageRows) {
		if err != nil {
			return nil, err
		}
		f, err := decode(e.Thread, e.Facts)
		if err != nil {
			faults = append(faults, err)
			continue
		}
		all[e.Thread] = f
	}
	return all, errors.Join(faults...)
}

// SetFacts implements [heads.Heads].
func (db *DB) SetFacts(ctx context.Context, thread string, f heads.Facts) error {
	data, err := encode(f)
	if err != nil || data == nil {
		return err
	}
	const query = `with known as materialized (select from done where change = $3), noted as (
			insert into done (change) select $3 where not exists (select from known)
		)
		insert into facts (thread, facts) select $1, $2 where not exists (select from known)
		on conflict (thread) do update set facts = facts.facts || excluded.facts`
	n := number()
	return db.try(ctx, func(ctx context.Context) error {
		_, err := db.pool.Exec(ctx, query, thread, data, n)
		if taken(err) {
			return nil // an earlier try was committed while this one ran
		}
		return err
	})
}

// encode encodes a change of facts as JSON. It returns nil if nothing changes.
func encode(f heads.Facts) (*string, error) {
	data, err := json.Marshal(f)
	if err != nil || string(data) == "{}" {
		return nil, err
	}
	if strings.Contains(strings.ReplaceAll(string(data), `\\`, ""), `\u0000`) {
		return nil, invalid("the facts of a thread cannot contain NUL")
	}
	return new(string(data)), nil
}

func decode(thread string, data []byte) (f heads.Facts, err error) {
	if data == nil {
		return f, nil
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return heads.Facts{}, &protocol.Error{Code: protocol.CodeCorrupt,
			Message: fmt.Sprintf("cannot parse the facts of thread %q in the database: %v", thread, err)}
	}
	return f, nil
}

func check(thread string, head protocol.Hash) error {
	if thread == "" || strings.ContainsRune(thread, 0) || !head.Valid() {
		return invalid("thread %q cannot have the head %q", thread, head)
	}
	return nil
}
