package pgstore

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/snapshots"
	"github.com/united-workforce/uwf/util/gitobject"
)

// chains reads chains with few round trips.
type chains struct{ Owner }

// Get implements [cas.Getter].
func (c chains) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	return reader{DB: c.DB}.Get(ctx, h)
}

// Nodes implements [snapshots.Source].
func (c chains) Nodes() cas.Reader { return c }

// Object implements [snapshots.Source].
func (c chains) Object(ctx context.Context, id protocol.Tree) (o remote.Object, err error) {
	for o, err = range (&Remote{db: c.DB}).GetObjects(ctx, []protocol.Tree{id}) {
	}
	return o, err
}

// RedactFiles removes a path from the snapshots of a thread; see [snapshots.PlanRedaction].
func (o Owner) RedactFiles(ctx context.Context, thread, path string, shared bool) (protocol.FilesRedacted, error) {
	const tries = 5
	for n := 1; ; n++ {
		done, err := o.redactFiles(ctx, thread, path, shared)
		if n == tries || !errors.Is(err, errChanged) {
			return done, errors.Join(err, o.vacuum(ctx, err, "objects"))
		}
	}
}

// errChanged means that something has changed since a plan was made.
var errChanged = errors.New("the threads keep changing; try again")

func (o Owner) redactFiles(ctx context.Context, thread, path string, shared bool) (done protocol.FilesRedacted, err error) {
	since, err := o.barrier(ctx)
	if err != nil {
		return done, err
	}
	plan, err := snapshots.PlanRedaction(ctx, chains{o}, o, thread, path, shared)
	if err != nil || plan.Done.States == 0 {
		return plan.Done, err
	}
	said := &heads.Redacted{Paths: []string{path}, Contents: slices.Sorted(maps.Keys(plan.Contents))}
	return plan.Done, o.try(ctx, func(ctx context.Context) error {
		return o.alone(ctx, func(tx pgx.Tx, _ time.Time) error {
			if changed, err := o.changed(ctx, tx, since); changed || err != nil {
				return errors.Join(err, errChanged)
			}
			const bury = `insert into objects (id, kind, content) select unnest($1::text[]), 'r', ''
				on conflict (id) do update set kind = 'r', content = '', put = clock_timestamp()`
			if _, err := tx.Exec(ctx, bury, texts(said.Contents)); err != nil {
				return err
			}
			for _, id := range plan.Threads {
				if err := o.say(ctx, tx, id, said); err != nil {
					return err
				}
			}
			return nil
		})
	})
}

// changed reports whether anything has changed since a time.
func (o Owner) changed(ctx context.Context, tx pgx.Tx, since time.Time) (changed bool, err error) {
	const query = `select exists (select from done where at >= $1) or exists (select from nodes where put >= $1)
		or exists (select from objects where put >= $1)`
	err = tx.QueryRow(ctx, query, since).Scan(&changed)
	return changed, err
}

// say adds a redaction to the facts of a thread, from which homes learn about it.
func (o Owner) say(ctx context.Context, tx pgx.Tx, thread string, said *heads.Redacted) error {
	known, err := o.Facts(ctx, thread)
	if err != nil {
		return err
	}
	facts, err := encode(heads.Facts{Redacted: said.And(known.Redacted)})
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, `insert into facts (thread, facts) values ($1, $2)
		on conflict (thread) do update set facts = facts.facts || excluded.facts`, thread, facts)
	return err
}

// CollectOptions are the options of [Owner.Collect].
type CollectOptions struct {
	Grace   time.Duration // for which nodes and objects stay after their last put
	DryRun  bool
	Damaged bool // see [gc.Options]
}

// Collected is the result of [Owner.Collect].
type Collected struct {
	gc.Report
	Objects      int   `json:"objects"` // before the collection
	FreedObjects int   `json:"freedObjects"`
	FreedBytes   int64 `json:"freedObjectBytes"`
}

// MinObjectGrace is the minimal time for which objects stay: a swap doesn't check that they exist.
const MinObjectGrace = 10 * time.Minute

// Collect removes the nodes and objects that no thread or workflow needs; see [gc.Run].
func (o Owner) Collect(ctx context.Context, options CollectOptions) (out Collected, err error) {
	clock := func() time.Time {
		at, _ := o.Now(ctx) // on error, everything is young
		return at
	}
	out.Report, err = gc.Run(ctx, chains{o}, gc.Options{Index: o, Grace: options.Grace, DryRun: options.DryRun,
		Damaged: options.Damaged, Now: clock})
	if err != nil {
		return out, err
	}
	release, err := o.lockUpkeep(ctx)
	if err != nil {
		return out, err
	}
	defer func() { err = errors.Join(err, release()) }()
	c := &collector{compaction: &compaction{Owner: o}, cutoff: clock().Add(-max(options.Grace, MinObjectGrace)),
		heads: map[string]cas.Hash{}, needed: map[protocol.Tree]bool{}}
	return out, c.run(ctx, options.DryRun, &out)
}

// collector removes objects.
type collector struct {
	*compaction
	cutoff time.Time
	heads  map[string]cas.Hash // whose snapshots are marked
	needed map[protocol.Tree]bool
}

// object is an object in a list.
type object struct {
	ID   protocol.Tree
	Kind byte
	Size int64
	Put  time.Time
}

func (c *collector) run(ctx context.Context, dry bool, out *Collected) (err error) {
	if c.since, err = c.barrier(ctx); err != nil {
		return err
	}
	var all []object
	for o, err := range c.list(ctx, time.Time{}) {
		if err != nil {
			return err
		}
		all = append(all, o)
	}
	if err := c.mark(ctx, all); err != nil {
		return err
	}
	out.Objects = len(all)
	isNeeded := func(o object) bool { return c.needed[o.ID] || o.Kind == redacted }
	garbage := slices.DeleteFunc(all, isNeeded)
	for part := range slices.Chunk(garbage, sweepRows) {
		if dry {
			out.count(part)
			continue
		}
		recheck := func() error {
			var young []object
			for o, err := range c.list(ctx, c.since) {
				if err != nil {
					return err
				}
				young = append(young, o)
			}
			return c.mark(ctx, young)
		}
		var rest []object
		err := c.slice(ctx, recheck, func(tx pgx.Tx) error {
			rest = slices.DeleteFunc(slices.Clone(part), isNeeded)
			ids := make([]string, len(rest))
			for i, o := range rest {
				ids[i] = string(o.ID)
			}
			_, err := tx.Exec(ctx, `delete from objects where id = any($1)`, ids)
			return err
		})
		if err != nil {
			return err
		}
		out.count(rest)
	}
	if dry {
		return nil
	}
	return c.vacuum(ctx, nil, "objects")
}

func (c *Collected) count(gone []object) {
	for _, o := range gone {
		c.FreedObjects++
		c.FreedBytes += o.Size
	}
}

// list yields the objects put since a time.
func (c *collector) list(ctx context.Context, since time.Time) func(func(object, error) bool) {
	const query = `select id, kind::text, octet_length(content), put from objects where id > $1 and put >= $2 order by id limit $3`
	return pages(func(after string) (page []object, err error) {
		err = c.try(ctx, func(ctx context.Context) error {
			rows, err := c.pool.Query(ctx, query, after, since, pageRows)
			if err != nil {
				return err
			}
			page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o object, err error) {
				var kind string
				err = row.Scan(&o.ID, &kind, &o.Size, &o.Put)
				if kind != "" {
					o.Kind = kind[0]
				}
				return o, err
			})
			return err
		})
		return page, err
	}, func(o object) string { return string(o.ID) }, pageRows)
}

// mark marks the snapshots of threads that have changed, young objects, and everything below.
func (c *collector) mark(ctx context.Context, objects []object) error {
	states, err := heads.ThreadStates(ctx, c)
	if err != nil {
		return err
	}
	facts, err := c.AllFacts(ctx)
	if err != nil {
		return err
	}
	var level []protocol.Tree
	add := func(id protocol.Tree) {
		if !c.needed[id] {
			c.needed[id], level = true, append(level, id)
		}
	}
	for id, at := range states {
		if c.heads[id] == at.Head {
			continue
		}
		trees, err := snapshots.Of(ctx, chains{c.Owner}, at.Head, facts[id])
		if err != nil {
			return fmt.Errorf("thread %s: %w", id, err)
		}
		c.heads[id] = at.Head
		for _, tree := range trees {
			add(tree)
		}
		for _, by := range said(facts[id].Redacted) {
			add(by)
		}
	}
	for _, o := range objects {
		if !o.Put.Before(c.cutoff) {
			add(o.ID)
		}
	}
	for len(level) > 0 {
		part := level[:min(len(level), 256)]
		level = level[len(part):]
		if err := c.below(ctx, part, add); err != nil {
			return err
		}
	}
	return nil
}

// said returns the snapshots that replace redacted ones.
func said(r *heads.Redacted) (instead []protocol.Tree) {
	if r != nil {
		instead = slices.Collect(maps.Values(r.Instead))
	}
	return instead
}

// below calls add for the entries of those objects that are directories.
func (c *collector) below(ctx context.Context, ids []protocol.Tree, add func(protocol.Tree)) error {
	var dirs []remote.Object
	err := c.try(ctx, func(ctx context.Context) error {
		rows, err := c.pool.Query(ctx, `select id, content from objects where id = any($1) and kind = 'd'`, large, texts(ids))
		if err != nil {
			return err
		}
		dirs, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (o remote.Object, err error) {
			err = row.Scan(&o.ID, &o.Content)
			return o, err
		})
		return err
	})
	if err != nil {
		return err
	}
	for _, dir := range dirs {
		entries, err := gitobject.Entries(dir.ID, dir.Content)
		if err != nil {
			return fmt.Errorf("object %s: %w", dir.ID, err)
		}
		for _, e := range entries {
			add(e.ID)
		}
	}
	return nil
}
