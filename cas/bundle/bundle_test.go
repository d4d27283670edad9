package bundle_test

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// Threads are exported and imported completely, with their state; importing again changes nothing, and
// exporting again gives the same bundle.
func TestRoundTrip(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := sample(t), newWorld(t, cas.XXH3)
	data := from.export()
	require.Equal(t, data, from.export(idC, idB, idA, idA), "equal threads, equal bytes")

	report, err := verify(data)
	require.NoError(t, err)
	require.Len(t, report.Threads, 3)
	require.Equal(t, 4, report.Threads[0].Steps)
	require.Equal(t, protocol.StatusCompleted, report.Threads[1].Status)
	require.Equal(t, "w", report.Threads[2].WorkflowName)
	require.Equal(t, []bundle.CheckedWorkflow{{Name: "w", WorkflowName: "w", Hash: report.Workflows[0].Hash}}, report.Workflows)

	done, err := to.imports(data, bundle.ImportOptions{Register: true})
	require.NoError(t, err)
	for _, th := range done.Threads {
		require.Equal(t, bundle.Added, th.Result)
	}
	require.Equal(t, report.Nodes, done.Nodes)
	want, err := heads.ThreadStates(ctx, from.index)
	require.NoError(t, err)
	got, err := heads.ThreadStates(ctx, to.index)
	require.NoError(t, err)
	require.Equal(t, want, got)
	sound(t, to)
	require.Equal(t, data, to.export())

	before := snapshot(t, to.home)
	done, err = to.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Zero(t, done.Added)
	for _, th := range done.Threads {
		require.Equal(t, bundle.Unchanged, th.Result)
	}
	require.Equal(t, before, snapshot(t, to.home))
}

func sound(t testing.TB, w *world) {
	t.Helper()
	report, err := fsck.Run(context.Background(), w.store, fsck.Options{Home: w.home, Now: clock})
	require.NoError(t, err)
	require.True(t, report.Sound(), "%v", report.Faults)
}

// An open bundle is a store that can be read.
func TestFileIsAStore(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := sample(t)
	data := w.export(idA)
	f, err := bundle.Receive(ctx, bytes.NewReader(data), &bytesSpool{})
	require.NoError(t, err)
	one := f.Manifest.Threads[0]
	require.Equal(t, idA, f.Only(ctx))
	chain, err := thread.Open(ctx, f, one.Head)
	require.NoError(t, err)
	n := 0
	for s, err := range chain.Steps(ctx) {
		require.NoError(t, err)
		_, err = chain.Output(ctx, s)
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 4, n)
	h, err := cas.Resolve(ctx, f, string(one.Head[:10]))
	require.NoError(t, err)
	require.Equal(t, one.Head, h)
	require.ErrorIs(t, f.Put(ctx), cas.ErrReadOnly)
	require.ErrorIs(t, f.Commit(ctx), cas.ErrReadOnly)
	_, err = f.Get(ctx, "0000000000000")
	require.ErrorIs(t, err, cas.ErrNotFound)
}

// Nodes can be exported without threads.
func TestRoots(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := sample(t), newWorld(t, cas.XXH3)
	m, err := bundle.CollectNodes(from.store, []cas.Hash{from.head(idA)})
	require.NoError(t, err)
	var out bytes.Buffer
	_, err = bundle.Write(ctx, &out, from.store, m, nil)
	require.NoError(t, err)
	_, err = to.imports(out.Bytes(), bundle.ImportOptions{})
	require.NoError(t, err)
	require.Empty(t, to.head(idA))
	_, err = thread.Open(ctx, to.store, from.head(idA))
	require.NoError(t, err)
}

// A file that isn't a bundle, or doesn't fit this store, is rejected with a clear error.
func TestRefused(t *testing.T) {
	t.Parallel()
	data := sample(t).export(idA)

	newer := bytes.Replace(data, []byte("uwf bundle 1\n"), []byte("uwf bundle 12\n"), 1)
	_, err := verify(newer)
	var version *bundle.NewerError
	require.ErrorAs(t, err, &version)
	require.Equal(t, "12", version.Version)

	for _, start := range []string{"", "uwf", "\x00\x00", "PK\x03\x04 something else", "a3"} {
		_, err := verify([]byte(start))
		require.ErrorIs(t, err, bundle.ErrNotBundle, "%q", start)
	}

	_, err = newWorld(t, cas.XXH64).imports(data, bundle.ImportOptions{})
	var hash *bundle.HashError
	require.ErrorAs(t, err, &hash)
}

// Any number of zeros costs no memory, even after a valid beginning. The test isn't parallel because it
// measures the process's memory.
func TestZeros(t *testing.T) {
	ctx := t.Context()
	data := sample(t).export(idA)
	zeros := filepath.Join(t.TempDir(), "zeros")
	require.NoError(t, os.WriteFile(zeros, nil, 0o644))
	require.NoError(t, os.Truncate(zeros, 10<<30))
	f, err := os.Open(zeros)
	require.NoError(t, err)
	defer func() { require.NoError(t, f.Close()) }()
	used := allocated(func() { _, err = bundle.Receive(ctx, f, &bytesSpool{}) })
	require.ErrorIs(t, err, bundle.ErrNotBundle)
	require.Less(t, used, uint64(1<<20))

	head := data[:len(data)/2]
	long := io.MultiReader(bytes.NewReader(head), endless{})
	spool := &bytesSpool{}
	used = allocated(func() { _, err = bundle.Receive(ctx, long, spool) })
	var fault *bundle.FaultError
	require.ErrorAs(t, err, &fault)
	require.Less(t, used, uint64(8<<20))
	require.Less(t, len(spool.data), 1<<20, "it reads no further than the first fault")
}

// allocated returns the memory that a call allocates in total.
func allocated(call func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	call()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

type bytesSpool struct{ data []byte }

func (s *bytesSpool) Write(p []byte) (int, error) {
	s.data = append(s.data, p...)
	return len(p), nil
}

func (s *bytesSpool) ReadAt(p []byte, at int64) (int, error) {
	return bytes.NewReader(s.data).ReadAt(p, at)
}

// A bundle received as a stream is the same bundle.
func TestReceive(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	data := sample(t).export()
	f, err := bundle.Receive(ctx, bytes.NewReader(data), &bytesSpool{})
	require.NoError(t, err)
	require.EqualValues(t, len(data), f.Size)
	_, err = f.Check(ctx)
	require.NoError(t, err)
	_, err = bundle.Receive(ctx, bytes.NewReader(append(data, 0)), &bytesSpool{})
	var fault *bundle.FaultError
	require.ErrorAs(t, err, &fault)
	require.EqualValues(t, len(data), fault.Offset)
}

// Damaged data isn't exported.
func TestExportOfDamage(t *testing.T) {
	t.Parallel()
	w := sample(t)
	h := w.head(idA)
	castest.FindRecord(t, w.store.Dir(), h).Flip()
	_, err := bundle.Collect(t.Context(), w.store, w.index, []string{idA})
	var corrupt *cas.CorruptError
	require.ErrorAs(t, err, &corrupt)
	m, err := bundle.Collect(t.Context(), w.store, w.index, []string{idC})
	require.NoError(t, err)
	_, err = bundle.Write(t.Context(), io.Discard, w.store, m, nil)
	require.ErrorAs(t, err, &corrupt)
	require.Equal(t, h, corrupt.Hash)
}

// Without the facts, a bundle would lack the children of its threads.
func TestCollectNeedsFacts(t *testing.T) {
	t.Parallel()
	w := newWorld(t, cas.XXH3)
	w.start(idA)
	path := filepath.Join(w.home, "facts.jsonl")
	require.NoError(t, os.RemoveAll(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	_, err := bundle.Collect(t.Context(), w.store, w.index, []string{idA})
	require.ErrorContains(t, err, path)
}
