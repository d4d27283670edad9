package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Remote is a database as a remote.
type Remote struct {
	db      *DB
	program string
}

var _ remote.Remote = (*Remote)(nil)

// Remote returns the database as a remote. program is the name that it reports.
func (db *DB) Remote(program string) *Remote { return &Remote{db: db, program: program} }

// Close implements [remote.Remote].
func (r *Remote) Close() error { return r.db.Close() }

// Info implements [remote.Remote].
func (r *Remote) Info(ctx context.Context) (remote.Info, error) {
	info := remote.Info{Hash: r.db.a, Program: r.program, Objects: true}
	err := r.db.try(ctx, func(ctx context.Context) error {
		return r.db.pool.QueryRow(ctx, `select (extract(epoch from clock_timestamp()) * 1000)::bigint`).Scan(&info.NowMs)
	})
	return info, err
}

// Missing implements [remote.Remote].
func (r *Remote) Missing(ctx context.Context, hashes []cas.Hash) ([]cas.Hash, error) {
	if err := remote.CheckHashes(hashes); err != nil || len(hashes) == 0 {
		return nil, errors.Join(err, ctx.Err())
	}
	return r.db.nodes().missing(ctx, hashes)
}

// Walk implements [remote.Remote].
func (r *Remote) Walk(ctx context.Context, roots, have []cas.Hash) iter.Seq2[cas.Hash, error] {
	return remote.Walk(ctx, reader{r.db, have[:min(len(have), ahead)]}, roots, have)
}

// Get implements [remote.Remote].
func (r *Remote) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	return func(yield func(remote.Record, error) bool) {
		if err := errors.Join(ctx.Err(), remote.CheckHashes(hashes)); err != nil {
			yield(remote.Record{}, err)
			return
		}
		for row, err := range r.db.nodes().rows(ctx, hashes) {
			var record remote.Record
			if err == nil {
				record, err = recordOf(row)
			}
			if !yield(record, err) || err != nil {
				return
			}
		}
	}
}

func recordOf(r row) (remote.Record, error) {
	redacted, is := cas.AsRedacted(r.err)
	switch {
	case is:
		t := redacted.Tombstone
		t.Foreign = false
		file, err := cas.MarshalTombstone(t)
		return remote.Record{Hash: r.Hash, File: file}, err
	case isMissing(r.err):
		return remote.Record{}, &remote.MissingError{Hash: string(r.Hash)}
	case r.err != nil:
		return remote.Record{}, r.err
	}
	return remote.Record{Hash: r.Hash, File: cas.MarshalFile(r.Node)}, nil
}

// Put implements [remote.Remote].
func (r *Remote) Put(ctx context.Context, records []remote.Record) (different []cas.Hash, err error) {
	if err := errors.Join(ctx.Err(), remote.CheckBatch(records)); err != nil {
		return nil, err
	}
	all := make([]given, 0, len(records))
	for _, record := range records {
		n, t, err := record.Check(r.db.a)
		if err != nil {
			return nil, err
		}
		g := nodeOf(n)
		if t != nil {
			g = given{Node: cas.Node{Hash: t.Hash, Type: t.Type, Timestamp: t.At}, tombstone: record.File}
		}
		all = append(all, g)
	}
	return r.db.put(ctx, all)
}

// Thread implements [remote.Remote].
func (r *Remote) Thread(ctx context.Context, thread string) (remote.State, error) {
	if err := askable(thread); err != nil {
		return remote.State{}, err
	}
	s, err := r.db.standing(ctx, thread)
	if err != nil {
		return remote.State{}, r.absent(ctx, thread, err)
	}
	return s.state()
}

// absent returns the error for a thread that doesn't exist, whose error is err so far: a [*remote.GoneError] if
// it was removed.
func (r *Remote) absent(ctx context.Context, thread string, err error) error {
	if !errors.Is(err, heads.ErrNoThread) {
		return err
	}
	var gone bool
	failed := r.db.try(ctx, func(ctx context.Context) error {
		return r.db.pool.QueryRow(ctx, `select exists (select from gone where thread = $1)`, thread).Scan(&gone)
	})
	if gone {
		return &remote.GoneError{Thread: thread}
	}
	return cmp.Or(failed, err)
}

func (s standing) state() (remote.State, error) {
	known, err := decode(s.thread, s.facts)
	state := remote.State{Thread: s.thread, Head: s.head, Facts: remote.Shared(known)}
	if e := s.ended; e != nil {
		state.Ended = &remote.Ended{Workflow: e.workflow, Status: e.status, CompletedAt: e.completedAt}
	}
	if s.fence != 0 {
		state.Lease = new(remote.Lease{Thread: s.thread, Holder: s.holder, Until: s.until, LeftMs: s.left})
	}
	return state, err
}

// listed returns the state for a list. A damaged row doesn't hide the others.
func (s standing) listed() remote.State {
	state, err := s.state()
	if err == nil {
		err = state.Check()
	}
	if err != nil {
		return remote.State{Thread: s.thread, Fault: err.Error()}
	}
	return state
}

// Threads implements [remote.Remote].
func (r *Remote) Threads(ctx context.Context, f remote.Filter) iter.Seq2[remote.State, error] {
	const query = `select false, ` + standingColumns + ` from heads h left join facts f using (thread)
		where h.thread > $1 and ($2 or h.ended is null) and ($3 or h.ended is not null) order by h.thread limit $4`
	return func(yield func(remote.State, error) bool) {
		if strings.ContainsRune(f.After, 0) {
			yield(remote.State{}, remote.Faultf("%q is not a thread id", f.After))
			return
		}
		listed := 0
		for s, err := range pages(func(after string) (page []*standing, err error) {
			err = r.db.try(ctx, func(ctx context.Context) error {
				rows, err := r.db.pool.Query(ctx, query, max(after, f.After), !f.Active, !f.Ended, pageRows)
				if err != nil {
					return err
				}
				page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (*standing, error) {
					r, err := pgx.RowToStructByPos[standingRow](row)
					return r.standing(), err
				})
				return err
			})
			return page, err
		}, func(s *standing) string { return s.thread }, pageRows) {
			var state remote.State
			if err == nil {
				state = s.listed()
			}
			if listed++; !yield(state, err) || err != nil || listed == f.Limit {
				return
			}
		}
	}
}

// Swap implements [remote.Remote].
func (r *Remote) Swap(ctx context.Context, s remote.Swap) error {
	facts, err := encode(remote.Shared(s.Facts))
	if err := errors.Join(ctx.Err(), s.Check(), err); err != nil {
		return err
	}
	for range 100 {
		if err = r.swap(ctx, s, facts); !errors.As(err, new(*sweptError)) {
			return err
		}
	}
	return err
}

// swap checks the nodes and makes the change. Errors include [*sweptError].
func (r *Remote) swap(ctx context.Context, s remote.Swap, facts *string) error {
	swept, err := r.whole(ctx, s.Head, s.Was)
	if err != nil {
		return err
	}
	var end *ended
	if e := s.Ended; e != nil {
		end = &ended{e.Workflow, e.Status, e.CompletedAt}
	}
	if s.Was == "" {
		err = r.db.begin(ctx, []beginning{{thread: s.Thread, head: s.Head, ended: end, facts: facts}}, swept)
		if !errors.Is(err, heads.ErrExists) {
			return err
		}
		is, err := r.Thread(ctx, s.Thread)
		return errors.Join(err, s.Compare(&is))
	}
	err = r.db.move(ctx, change{thread: s.Thread, was: s.Was, wasEnded: s.WasEnded, head: s.Head, ended: end,
		facts: facts, fence: s.Fence, swept: swept})
	if stands := (*standsError)(nil); errors.As(err, &stands) && stands.is == nil {
		err = r.absent(ctx, s.Thread, fmt.Errorf("%w: %s", heads.ErrNoThread, s.Thread))
		if errors.As(err, new(*remote.GoneError)) {
			return err
		}
		return s.Compare(nil)
	}
	return refusal(s, err)
}

// whole checks that all nodes reachable from a head exist, and returns the number of removals before. It assumes
// that everything below was does, because was has been the thread's head, or else the swap will fail.
func (r *Remote) whole(ctx context.Context, head, was cas.Hash) (swept int64, err error) {
	reader := reader{DB: r.db}
	if was != "" {
		reader.stop = []cas.Hash{was}
	}
	if _, swept, err = reader.loadAt(ctx, head); err != nil { // prefetches the nodes below the head
		return swept, err
	}
	err = remote.CheckComplete(ctx, reader, head, was)
	if was != "" && isMissing(err) {
		// was itself may be missing if it has never been a head.
		return swept, remote.Missing(err)
	}
	return swept, err
}

// refusal converts the error of a change to the errors of a remote.
func refusal(s remote.Swap, err error) error {
	var stands *standsError
	var fence *fenceError
	switch {
	case errors.As(err, &stands):
		is, err := stands.is.state()
		return errors.Join(err, s.Compare(&is))
	case errors.As(err, &fence) && s.Fence == 0:
		is, err := fence.is.state()
		if err != nil {
			return err
		}
		return &remote.LeasedError{Lease: *is.Lease}
	case errors.As(err, &fence):
		return &remote.FenceError{Thread: s.Thread, Fence: s.Fence}
	}
	return err
}

// Workflows implements [remote.Remote].
func (r *Remote) Workflows(ctx context.Context) ([]heads.Named, error) { return r.db.Workflows(ctx) }

// Register implements [remote.Remote].
func (r *Remote) Register(ctx context.Context, name string, was, workflow cas.Hash) error {
	if err := errors.Join(ctx.Err(), remote.CheckName(name, was, workflow)); err != nil {
		return err
	}
	if problem := protocol.WorkflowNameProblem(name); problem != "" {
		return remote.Faultf("the name %q %s", name, problem)
	}
	err := r.db.rename(ctx, name, was, workflow)
	var other *nameError
	switch {
	case errors.As(err, &other):
		return &remote.NameError{Name: name, Want: was, Got: other.got}
	case isMissing(err):
		return &remote.MissingError{Hash: string(workflow)}
	}
	return err
}

// Redactions implements [remote.Remote]. The state of the list is the number of the last one.
func (r *Remote) Redactions(ctx context.Context, known string) (list []remote.Redaction, state string, err error) {
	const query = `select r.seq::text, r.hash, r.thread, n.tombstone from redactions r join nodes n using (hash)
		where n.tombstone is not null and exists (select from redactions having max(seq)::text <> $1) order by r.seq`
	err = r.db.try(ctx, func(ctx context.Context) error {
		list, state = nil, known
		rows, err := r.db.pool.Query(ctx, query, known)
		if err != nil {
			return err
		}
		list, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (d remote.Redaction, err error) {
			var file []byte
			if err := row.Scan(&state, &d.Hash, &d.Thread, &file); err != nil {
				return d, err
			}
			t, err := cas.UnmarshalTombstone(d.Hash, file)
			d.Reason = t.Reason
			return d, err
		})
		return err
	})
	return list, state, err
}

// askable returns an error if the database cannot store the thread ID.
func askable(thread string) error {
	if strings.ContainsRune(thread, 0) {
		return remote.Faultf("%q is not a thread id", thread)
	}
	return nil
}

func checkTake(thread, holder string, duration time.Duration) error {
	if strings.ContainsRune(holder, 0) {
		return remote.Faultf("a lease holder's name cannot contain NUL")
	}
	return remote.CheckLease(thread, holder, duration)
}
