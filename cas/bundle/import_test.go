package bundle_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
	"github.com/united-workforce/uwf/util/sampletest"
)

// pair returns two homes that have the same thread at its second step.
func pair(t *testing.T) (from, to *world) {
	from, to = newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
	from.start(idA)
	from.step(idA, map[string]any{"n": 1})
	_, err := to.imports(from.export(idA), bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, from.head(idA), to.head(idA))
	return from, to
}

func one(t *testing.T, done bundle.Imported, err error) bundle.ImportedThread {
	t.Helper()
	require.NoError(t, err)
	require.Len(t, done.Threads, 1)
	return done.Threads[0]
}

// A thread that has advanced elsewhere advances here, under its lock.
func TestAdvance(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.step(idA, map[string]any{"n": 2})
	busy := errors.New("is being stepped")
	_, err := to.imports(from.export(idA), bundle.ImportOptions{Lock: func(context.Context, string) (func(), error) { return nil, busy }})
	require.ErrorIs(t, err, busy)
	require.NotEqual(t, from.head(idA), to.head(idA))

	var locked []string
	done, err := to.imports(from.export(idA), bundle.ImportOptions{Lock: func(_ context.Context, id string) (func(), error) {
		locked = append(locked, id)
		return func() { locked = append(locked, "released") }, nil
	}})
	require.Equal(t, bundle.Advanced, one(t, done, err).Result)
	require.Equal(t, from.head(idA), to.head(idA))
	require.Equal(t, []string{idA, "released"}, locked)
	sound(t, to)

	// It ends there, and then here; resuming it there doesn't resume it here.
	from.step(idA, map[string]any{"n": 3})
	from.end(idA)
	done, err = to.imports(from.export(idA), bundle.ImportOptions{})
	require.Equal(t, bundle.Advanced, one(t, done, err).Result)
	ended, err := to.index.Ended(t.Context(), idA)
	require.NoError(t, err)
	require.EqualValues(t, 7, ended.CompletedAt)
	ended, err = from.index.Ended(t.Context(), idA)
	require.NoError(t, err)
	require.NoError(t, from.index.Reopen(t.Context(), ended, 8))
	from.step(idA, map[string]any{"n": 4})
	done, err = to.imports(from.export(idA), bundle.ImportOptions{})
	require.Equal(t, bundle.Stays, one(t, done, err).Result)
	_, err = to.index.Ended(t.Context(), idA)
	require.NoError(t, err)
	sound(t, to)
}

// A thread that has advanced here stays, even if an older bundle is imported.
func TestAhead(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	old := from.export(idA)
	head := to.step(idA, map[string]any{"n": 2})
	before := snapshot(t, to.home)
	done, err := to.imports(old, bundle.ImportOptions{})
	th := one(t, done, err)
	require.Equal(t, bundle.Ahead, th.Result)
	require.Equal(t, head, th.Head)
	require.Equal(t, before, snapshot(t, to.home))

	// At the same head this side decides: a bundle from before or after the end changes nothing.
	to.end(idA)
	now := to.export(idA)
	back, err := to.index.Ended(t.Context(), idA)
	require.NoError(t, err)
	require.NoError(t, to.index.Reopen(t.Context(), back, 9))
	done, err = to.imports(now, bundle.ImportOptions{})
	require.Equal(t, bundle.Unchanged, one(t, done, err).Result)
	_, err = to.index.Head(t.Context(), idA)
	require.NoError(t, err)
}

// Nodes that are damaged here don't prevent an older bundle from repairing them, or from being added under a new id.
func TestOlderThanDamage(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		damaged func(old, head cas.Hash) cas.Hash
		want    string
	}{
		"the bundle's head": {func(old, _ cas.Hash) cas.Hash { return old }, bundle.Ahead},
		"the head":          {func(_, head cas.Hash) cas.Hash { return head }, bundle.Renamed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			from, to := pair(t)
			old := from.export(idA)
			head := to.step(idA, map[string]any{"n": 2})
			damaged := c.damaged(from.head(idA), head)
			castest.FindRecord(t, to.store.Dir(), damaged).Flip()
			done, err := to.imports(old, bundle.ImportOptions{NewID: func() (string, error) { return idB, nil }})
			require.Equal(t, c.want, one(t, done, err).Result)
			require.Equal(t, head, to.head(idA))
			if damaged != head {
				sound(t, to)
			}
		})
	}
}

// Two diverged threads with one id are rejected or kept separately.
func TestConflict(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	from.step(idA, map[string]any{"n": 2})
	to.step(idA, map[string]any{"n": 3})
	before := snapshot(t, to.home)
	_, err := to.imports(from.export(idA), bundle.ImportOptions{})
	var conflict *bundle.ConflictError
	require.ErrorAs(t, err, &conflict)
	require.Equal(t, bundle.ConflictError{Thread: idA, Here: to.head(idA), Bundle: from.head(idA)}, *conflict)
	require.Equal(t, before, snapshot(t, to.home))

	done, err := to.imports(from.export(idA), bundle.ImportOptions{NewID: func() (string, error) { return idB, nil }})
	th := one(t, done, err)
	require.Equal(t, bundle.ImportedThread{Thread: idB, From: idA, Head: from.head(idA), Result: bundle.Renamed}, th)
	require.Equal(t, from.head(idA), to.head(idB))
	require.Equal(t, conflict.Here, to.head(idA))
	sound(t, to)

	// A thread with another start has diverged from the beginning.
	alien := newWorld(t, cas.XXH3)
	alien.start(idA[:25] + "Z")
	require.NoError(t, alien.index.Add(t.Context(), idA, alien.head(idA[:25]+"Z"), heads.Facts{}))
	_, err = to.imports(alien.export(idA), bundle.ImportOptions{})
	require.ErrorAs(t, err, &conflict)
}

// A name that refers to another workflow here is unchanged. A new one is registered only on request, and only
// if it is the workflow's own.
func TestNames(t *testing.T) {
	t.Parallel()
	from, to := sample(t), newWorld(t, cas.XXH3)
	other, _ := to.workflow("v")
	require.NoError(t, to.index.Register(t.Context(), "w", other))
	hash, err := from.index.Workflow(t.Context(), "w")
	require.NoError(t, err)
	require.NoError(t, from.index.Register(t.Context(), "review", hash))
	data := from.export(idA)
	report, err := verify(data)
	require.NoError(t, err)
	require.Equal(t, []bundle.CheckedWorkflow{{Name: "review", Hash: hash, WorkflowName: "w"}, {Name: "w", Hash: hash, WorkflowName: "w"}}, report.Workflows)

	imports := func(to *world, register bool, review, w bundle.ImportedWorkflow) {
		t.Helper()
		review.Name, review.WorkflowName, w.Name, w.WorkflowName = "review", "w", "w", "w"
		done, err := to.imports(data, bundle.ImportOptions{Register: register})
		require.NoError(t, err)
		require.Equal(t, []bundle.ImportedWorkflow{review, w}, done.Workflows)
	}
	misnamed := bundle.ImportedWorkflow{Hash: hash, Result: bundle.Misnamed}
	imports(to, true, misnamed, bundle.ImportedWorkflow{Hash: other, Result: bundle.Kept})
	got, err := to.index.Workflow(t.Context(), "w")
	require.NoError(t, err)
	require.Equal(t, other, got)

	empty := newWorld(t, cas.XXH3)
	imports(empty, false, misnamed, bundle.ImportedWorkflow{Hash: hash, Result: bundle.Offered})
	names, err := empty.index.Workflows(t.Context())
	require.NoError(t, err)
	require.Empty(t, names)
	imports(empty, true, misnamed, bundle.ImportedWorkflow{Hash: hash, Result: bundle.Added})
	names, err = empty.index.Workflows(t.Context())
	require.NoError(t, err)
	require.Equal(t, []heads.Named{{Name: "w", Hash: hash}}, names)
	imports(empty, true, misnamed, bundle.ImportedWorkflow{Hash: hash, Result: bundle.Unchanged})
}

// A collision with an existing node stops the import before anything is written.
func TestCollisionHere(t *testing.T) {
	t.Parallel()
	from, to, _ := collided(t)
	before := snapshot(t, to.home)
	_, err := to.imports(from.export(idA), bundle.ImportOptions{})
	var collision *cas.CollisionError
	require.ErrorAs(t, err, &collision)
	require.Equal(t, before, snapshot(t, to.home))
}

// collided returns two homes with the same thread except for one output, whose two contents have the same
// hash. The heads are therefore equal, and hashes can't distinguish the threads.
func collided(t *testing.T) (one, two *world, output cas.Hash) {
	one, two = newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
	for i, w := range []*world{one, two} {
		a, b := castest.Collision(t, cas.XXH3)
		value, err := []cas.Node{a, b}[i].Value()
		require.NoError(t, err)
		w.start(idA)
		w.step(idA, value)
		w.step(idA, map[string]any{"n": 1})
	}
	require.Equal(t, one.head(idA), two.head(idA), "the hash does not tell them apart")
	chain, err := thread.Open(t.Context(), one.store, one.head(idA))
	require.NoError(t, err)
	for s, err := range chain.Steps(t.Context()) {
		require.NoError(t, err)
		output = s.Output
	}
	x, err := one.store.Get(t.Context(), output)
	require.NoError(t, err)
	y, err := two.store.Get(t.Context(), output)
	require.NoError(t, err)
	require.NotEqual(t, x.Payload, y.Payload)
	return one, two, output
}

// fast is a disk without flushes, which don't matter after the power cut.
type fast struct{ durable.FS }

func (f fast) WriteTemp(path string, data []byte, perm fs.FileMode, _ durable.Flush) (string, error) {
	return f.FS.WriteTemp(path, data, perm, durable.NoFlush)
}

func (f fast) Append(path string, data []byte, perm fs.FileMode, _ durable.Flush) error {
	return f.FS.Append(path, data, perm, durable.NoFlush)
}
func (fast) SyncFile(string) error { return nil }
func (fast) SyncDir(string) error  { return nil }

// After a power cut or kill at any point of an import, every head has a complete chain, and importing again
// completes it.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	from := newWorld(t, cas.XXH3)
	from.start(idA)
	from.step(idA, map[string]any{"n": 1})
	from.start(idB)
	from.end(idB)
	data := from.export()
	root := t.TempDir()
	rec := durabletest.NewRecorder(fast{durable.OS()}, root)
	s, err := fsstore.Open(t.Context(), filepath.Join(root, "cas"), fsstore.Options{Home: root, FS: rec})
	require.NoError(t, err)
	require.NoError(t, s.Make(t.Context(), 1)) // tested elsewhere
	made := len(rec.Ops())
	to := &world{t: t, home: root, store: s, index: fileheads.Open(root, rec)}
	_, err = to.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	ops := rec.Ops()
	seen, sample := map[string]bool{}, sampletest.New(t)
	for n := made; n <= len(ops); n++ {
		for o := range durabletest.Replay(ops, n) {
			key := fmt.Sprint(n == len(ops), o.Key())
			if seen[key] {
				continue
			}
			seen[key] = true
			if !sample() {
				continue
			}
			dir := filepath.Join(t.TempDir(), "disk")
			require.NoError(t, o.Write(dir))
			checkCut(t, dir, data, from, n == len(ops))
			require.NoError(t, os.RemoveAll(dir))
		}
	}
}

func checkCut(t *testing.T, dir string, data []byte, from *world, acknowledged bool) {
	t.Helper()
	w := openWorld(t, dir, cas.XXH3, fast{durable.OS()})
	all, err := heads.ThreadStates(t.Context(), w.index)
	require.NoError(t, err)
	if acknowledged {
		require.Len(t, all, 2)
	}
	for _, at := range all {
		for _, err := range graph.Walk(t.Context(), w.store, []cas.Hash{at.Head}, graph.WalkOptions{FollowTypes: true}) {
			require.NoError(t, err, "a head leads to nothing")
		}
	}
	_, err = w.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, from.head(idA), w.head(idA))
	require.Equal(t, from.head(idB), w.head(idB))
}
