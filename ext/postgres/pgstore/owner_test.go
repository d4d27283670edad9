//go:build postgres

package pgstore_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/prune"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	chainof "github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/ext/postgres/pgstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/gitobject"
)

const idA, idB = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB"

// isWhole requires that everything that a thread needs is there.
func isWhole(t *testing.T, r remote.Remote, id string) {
	t.Helper()
	s, err := r.Thread(t.Context(), id)
	require.NoError(t, err)
	for h, err := range r.Walk(t.Context(), []cas.Hash{s.Head}, nil) {
		require.NoError(t, err, h)
	}
}

func checkDB(t *testing.T, o pgstore.Owner) fsck.Report {
	t.Helper()
	report, err := fsck.Run(t.Context(), o, fsck.Options{Index: o, Now: time.Now})
	require.NoError(t, err)
	return report
}

func TestCollect(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, fresh(), pgstore.Options{})
	r, owner := db.Remote("test"), db.Owner()
	a, b := remotetest.NewChain(t, cas.XXH3, "a", 3), remotetest.NewChain(t, cas.XXH3, "b", 2)
	a.Begin(r, idA)
	b.Begin(r, idB)
	loose := b.After(b.Head(), 9)
	b.Push(r, loose)
	require.NoError(t, r.Register(ctx, "fix", "", a.Workflow))

	done, err := owner.Collect(ctx, pgstore.CollectOptions{Grace: time.Hour})
	require.NoError(t, err)
	require.Zero(t, done.Freed, "everything is young")
	_, err = owner.Remove(ctx, idA)
	require.NoError(t, err)
	again, err := owner.Remove(ctx, idA)
	require.NoError(t, err)
	require.Empty(t, again.Threads)
	_, err = owner.Remove(ctx, "01ARZ3NDEKTSV4RRFFQ69G5FAC")
	require.ErrorIs(t, err, heads.ErrNoThread)

	dry, err := owner.Collect(ctx, pgstore.CollectOptions{DryRun: true})
	require.NoError(t, err)
	done, err = owner.Collect(ctx, pgstore.CollectOptions{})
	require.NoError(t, err)
	require.Equal(t, dry.Freed, done.Freed)
	require.Positive(t, done.Freed)
	for _, h := range []cas.Hash{a.Head(), loose} {
		has, err := db.Has(ctx, h)
		require.NoError(t, err)
		require.False(t, has)
	}
	isWhole(t, r, idB)
	has, err := db.Has(ctx, a.Workflow)
	require.NoError(t, err)
	require.True(t, has, "a registered workflow stays")
	require.Empty(t, checkDB(t, owner).Faults)

	// What the cache of a client remembers is not there any longer.
	var missing *remote.MissingError
	require.ErrorAs(t, r.Swap(ctx, remote.Swap{Thread: idB, Was: b.Head(), Head: loose}), &missing)
	b.Push(r, loose)
	require.NoError(t, r.Swap(ctx, remote.Swap{Thread: idB, Was: b.Head(), Head: loose}))
}

// Threads are exported from the database, and forgotten there unless somebody works on them.
func TestExportAndPrune(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	db := open(t, fresh(), pgstore.Options{Upkeep: true})
	r, owner := db.Remote("test"), db.Owner()
	for i, id := range []string{idA, idB} {
		c := remotetest.NewChain(t, cas.XXH3, id, 2)
		c.Begin(r, id)
		end := remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCompleted, CompletedAt: 1}
		require.NoError(t, r.Swap(ctx, remote.Swap{Thread: id, Was: c.Head(), Head: c.Head(), Ended: &end}))
		if i > 0 {
			_, err := r.Take(ctx, id, "somebody", time.Hour)
			require.NoError(t, err)
		}
	}
	m, err := bundle.Collect(ctx, owner, owner, nil)
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = bundle.Write(ctx, &out, owner, m, nil)
	require.NoError(t, err)
	spool, err := os.Create(filepath.Join(t.TempDir(), "spool"))
	require.NoError(t, err)
	defer func() { require.NoError(t, spool.Close()) }()
	f, err := bundle.Receive(ctx, &out, spool)
	require.NoError(t, err)
	report, err := f.Check(ctx)
	require.NoError(t, err)
	require.Len(t, report.Threads, 2)

	pruned, err := prune.Run(ctx, owner, prune.Options{Keep: time.Hour, Now: time.Now()})
	require.NoError(t, err)
	require.Len(t, pruned.Pruned, 1)
	require.Equal(t, idA, pruned.Pruned[0].Thread)
	_, err = r.Thread(ctx, idA)
	require.ErrorAs(t, err, new(*remote.GoneError))
	isWhole(t, r, idB)
}

// Clients push without a pause while another process collects without grace. What was acknowledged is whole.
func TestCollectDuringPushes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	query := fresh()
	owner := open(t, query, pgstore.Options{}).Owner()
	const clients, steps = 4, 25
	stop, finish := context.WithCancel(ctx)
	var group, collecting sync.WaitGroup
	errs := make([]error, clients)
	var freed, rejected atomic.Int64
	collecting.Go(func() {
		for stop.Err() == nil {
			done, err := owner.Collect(stop, pgstore.CollectOptions{})
			if err != nil && stop.Err() == nil {
				t.Errorf("collect: %v", err)
			}
			freed.Add(int64(done.Freed))
		}
	})
	id := func(i int) string { return fmt.Sprintf("01ARZ3NDEKTSV4RRFFQ69G5F%02d", i) }
	for i := range clients {
		chain := remotetest.NewChain(t, cas.XXH3, fmt.Sprint("client ", i), steps)
		db := open(t, query, pgstore.Options{})
		group.Go(func() {
			r, was := db.Remote("test"), cas.Hash("")
			for _, head := range chain.Heads {
				for {
					chain.Push(r, head)
					err := r.Swap(ctx, remote.Swap{Thread: id(i), Was: was, Head: head})
					if errors.As(err, new(*remote.MissingError)) {
						rejected.Add(1) // collected before the swap, so the client sends it again
						continue
					}
					if errs[i] = err; err != nil {
						return
					}
					break
				}
				was = head
			}
		})
	}
	group.Wait()
	finish()
	collecting.Wait()
	require.NoError(t, errors.Join(errs...))
	r := open(t, query, pgstore.Options{}).Remote("test")
	for i := range clients {
		isWhole(t, r, id(i))
	}
	require.Empty(t, checkDB(t, owner).Faults)
	t.Logf("%d nodes were collected, %d swaps were rejected", freed.Load(), rejected.Load())
}

func TestRedact(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	query := fresh()
	db := open(t, query, pgstore.Options{})
	r, owner := db.Remote("test"), db.Owner()
	c := remotetest.NewChain(t, cas.XXH3, "a", 2)
	c.Begin(r, idA)
	chain, err := chainof.Open(ctx, db, c.Head())
	require.NoError(t, err)
	secret := chain.Last.Detail
	sealed, err := seal.Keep(ctx, owner, c.Head())
	require.NoError(t, err)
	require.NoError(t, sealed.Err)
	require.Positive(t, sealed.New)

	now := func() time.Time { return time.UnixMilli(1_780_000_000_000) }
	_, err = owner.RedactNode(ctx, idA, c.Head(), redact.Options{Now: now})
	require.ErrorAs(t, err, new(*redact.NeededError))
	done, err := owner.RedactNode(ctx, idA, secret, redact.Options{Reason: "a key", Now: now})
	require.NoError(t, err)
	require.False(t, done.Already)
	_, err = db.Get(ctx, secret)
	redacted, ok := cas.AsRedacted(err)
	require.True(t, ok)
	require.Equal(t, "a key", redacted.Tombstone.Reason)
	different, err := r.Put(ctx, []remote.Record{c.Record(secret)})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{secret}, different, "it doesn't come back")
	report := checkDB(t, owner)
	require.Empty(t, report.Faults)
	require.Len(t, report.Tombstones, 1)
	require.Equal(t, sealed.New, report.Seals)
	_, err = owner.Collect(ctx, pgstore.CollectOptions{})
	require.NoError(t, err)
	_, err = db.Get(ctx, secret)
	require.Error(t, err)
	_, ok = cas.AsRedacted(err)
	require.True(t, ok)

	sql(t, query, `update nodes set payload = '\x00' where hash = $1`, string(c.Head()))
	report = checkDB(t, owner)
	require.NotEmpty(t, report.Faults)
	require.Equal(t, fsck.Damaged, report.Faults[0].Kind)
	require.Equal(t, []string{idA}, report.Faults[0].Threads)
	_, err = fsck.Run(ctx, owner, fsck.Options{Index: owner, Repair: true, Now: time.Now})
	require.NoError(t, err)
	c.Push(r, c.Head())
	isWhole(t, r, idA)
	stats, err := owner.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Quarantine)
	require.EqualValues(t, 1, stats.Redactions)
}

// file and dir return objects.
func file(content string) remote.Object {
	return remote.Object{ID: gitobject.ID(gitobject.File, []byte(content), "sha1"), Kind: gitobject.File, Content: []byte(content)}
}

func dir(name string, of remote.Object) remote.Object {
	mode := "100644"
	if of.Kind == gitobject.Directory {
		mode = "40000"
	}
	sum := make([]byte, 20)
	_, err := fmt.Sscanf(string(of.ID[len("sha1:"):]), "%x", &sum)
	if err != nil {
		panic(err)
	}
	content := append([]byte(mode+" "+name+"\x00"), sum...)
	return remote.Object{ID: gitobject.ID(gitobject.Directory, content, "sha1"), Kind: gitobject.Directory, Content: content}
}

func TestFiles(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	query := fresh()
	db := open(t, query, pgstore.Options{})
	r, owner := db.Remote("test"), db.Owner()
	key, other := file("a key"), file("unneeded")
	below := dir("key.pem", key)
	root := dir("config", below)
	require.NoError(t, r.PutObjects(ctx, []remote.Object{key, other, below, root}))
	c := remotetest.NewChain(t, cas.XXH3, "a", 1)
	c.Push(r, c.Head())
	require.NoError(t, r.Swap(ctx, remote.Swap{Thread: idA, Head: c.Head(), Facts: heads.Facts{
		Repository: &heads.Repository{Base: "0123456789012345678901234567890123456789", Tree: root.ID}}}))

	collected := func() (ids []protocol.Tree) {
		done, err := owner.Collect(ctx, pgstore.CollectOptions{})
		require.NoError(t, err)
		ids, err = r.MissingObjects(ctx, []protocol.Tree{key.ID, other.ID, below.ID, root.ID})
		require.NoError(t, err)
		require.Len(t, ids, done.FreedObjects)
		return ids
	}
	require.Empty(t, collected(), "they are young")
	sql(t, query, `update objects set put = now() - interval '1 hour'`)
	require.Equal(t, []protocol.Tree{other.ID}, collected())

	done, err := owner.RedactFiles(ctx, idA, "config/key.pem", false)
	require.NoError(t, err)
	require.Equal(t, 1, done.States)
	missing, err := r.MissingObjects(ctx, []protocol.Tree{key.ID})
	require.NoError(t, err)
	require.Empty(t, missing, "it is not wanted")
	require.NoError(t, r.PutObjects(ctx, []remote.Object{key}))
	for _, err := range r.GetObjects(ctx, []protocol.Tree{key.ID}) {
		require.ErrorAs(t, err, new(*remote.MissingError))
	}
	s, err := r.Thread(ctx, idA)
	require.NoError(t, err)
	require.Equal(t, []string{"config/key.pem"}, s.Facts.Redacted.Paths)
	_, err = owner.Remove(ctx, idA)
	require.NoError(t, err)
	sql(t, query, `update objects set put = now() - interval '1 hour'`)
	_, err = owner.Collect(ctx, pgstore.CollectOptions{})
	require.NoError(t, err)
	stats, err := owner.Stats(ctx)
	require.NoError(t, err)
	require.EqualValues(t, 1, stats.Objects, "only that it was redacted")
}
