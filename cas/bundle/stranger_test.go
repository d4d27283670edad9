package bundle_test

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/util/threadid"
)

// A thread with an id in the future would be the newest forever.
func TestFuture(t *testing.T) {
	t.Parallel()
	from, to := newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
	const far = "7ZZZZZZZZZZZZZZZZZZZZZZZZZ"
	from.start(far)
	_, err := to.imports(from.export(far), bundle.ImportOptions{})
	var future *bundle.FutureError
	require.ErrorAs(t, err, &future)
	require.Equal(t, far, future.Thread)
	require.Empty(t, to.head(far))
	done, err := to.imports(from.export(far), bundle.ImportOptions{From: "x", NewID: func() (string, error) { return idB, nil }})
	require.Equal(t, bundle.ImportedThread{Thread: idB, From: far, Head: from.head(far), Result: bundle.Renamed}, one(t, done, err))

	// Clocks differ by minutes at most.
	soon, err := threadid.New(clock().Add(9*time.Minute), zeros{})
	require.NoError(t, err)
	from.start(soon)
	done, err = to.imports(from.export(soon), bundle.ImportOptions{})
	require.Equal(t, bundle.Added, one(t, done, err).Result)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// An imported thread is known as such. So is one that moves, because anyone might have made its newest steps,
// and an earlier confirmation wasn't about them.
func TestImportedIsKnown(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
	from.start(idA)
	imported := func(w *world, data []byte, name string, startedHere bool) {
		t.Helper()
		_, err := w.imports(data, bundle.ImportOptions{From: name})
		require.NoError(t, err)
		facts, err := w.index.Facts(ctx, idA)
		require.NoError(t, err)
		require.Equal(t, &heads.Imported{From: name, AtMs: clock().UnixMilli(), Inherited: startedHere}, facts.Imported)
		require.Equal(t, startedHere, facts.StartedHere())
		require.True(t, facts.Foreign())
	}
	imported(to, from.export(idA), "a.uwfb", false)
	require.NoError(t, to.index.SetFacts(ctx, idA, heads.Facts{Imported: &heads.Imported{From: "a.uwfb", Confirmed: true}}))
	from.step(idA, map[string]any{"n": 1})
	imported(to, from.export(idA), "b.uwfb", false)

	// This also applies where it was started: it asks again, and still counts for @.
	to.step(idA, map[string]any{"n": 2})
	imported(from, to.export(idA), "c.uwfb", true)
	to.step(idA, map[string]any{"n": 3})
	imported(from, to.export(idA), "d.uwfb", true)
}

// A thread that has ended here isn't restarted by a bundle with more steps.
func TestEndedStaysEnded(t *testing.T) {
	t.Parallel()
	from, to := pair(t)
	to.end(idA)
	from.step(idA, map[string]any{"n": 2})
	head := to.head(idA)
	done, err := to.imports(from.export(idA), bundle.ImportOptions{})
	require.Equal(t, bundle.ImportedThread{Thread: idA, Head: head, Result: bundle.Stays}, one(t, done, err))
	_, err = to.index.Ended(t.Context(), idA)
	require.NoError(t, err)

	done, err = to.imports(from.export(idA), bundle.ImportOptions{NewID: func() (string, error) { return idB, nil }})
	require.Equal(t, bundle.Renamed, one(t, done, err).Result)
	require.Equal(t, from.head(idA), to.head(idB))
	sound(t, to)
}

// A tombstone that nothing references is rejected, because it could replace a common prompt.
func TestATombstoneIsNoRoot(t *testing.T) {
	t.Parallel()
	from, to := sample(t), newWorld(t, cas.XXH3)
	turn := from.lastTurn(idB)
	n, err := from.store.Get(t.Context(), turn)
	require.NoError(t, err)
	file, err := cas.MarshalTombstone(cas.Tombstone{Hash: turn, Type: n.Type})
	require.NoError(t, err)
	castest.Forge(t, from.store.Dir(), record.Tombstone, turn.Number(), file)
	m, err := bundle.CollectNodes(from.store, []cas.Hash{turn})
	require.NoError(t, err)
	var data bytes.Buffer
	_, err = bundle.Write(t.Context(), &data, from.store, m, nil)
	require.NoError(t, err)
	_, err = to.imports(data.Bytes(), bundle.ImportOptions{})
	prosetest.Error(t, err)
	_, err = to.store.Get(t.Context(), turn)
	require.ErrorIs(t, err, cas.ErrNotFound)
}

// Nor can a bundle redact what can't be redacted: the schema of a role that hasn't run yet, whose tombstone
// can claim anything.
func TestATombstoneIsNoSchema(t *testing.T) {
	t.Parallel()
	for _, typeOf := range []func(*cas.Kinds) cas.Hash{(*cas.Kinds).MetaHash, func(k *cas.Kinds) cas.Hash { return k.Hash(protocol.KindText) }} {
		from, to := newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
		from.start(idA)
		_, schema := from.workflow("w")
		file, err := cas.MarshalTombstone(cas.Tombstone{Hash: schema, Type: typeOf(from.store.Kinds())})
		require.NoError(t, err)
		castest.Forge(t, from.store.Dir(), record.Tombstone, schema.Number(), file)
		_, err = to.imports(from.export(idA), bundle.ImportOptions{})
		prosetest.Error(t, err)
		_, err = to.store.Get(t.Context(), schema)
		require.ErrorIs(t, err, cas.ErrNotFound)
	}
}

// Content that only a redacted node referenced doesn't come back after the collector has removed it.
func TestNodesBelowRedactionStayDeleted(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from, to := newWorld(t, cas.XXH3), newWorld(t, cas.XXH3)
	from.start(idA)
	from.step(idA, map[string]any{"n": 1})
	data := from.export(idA)
	_, err := to.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	turn := to.lastTurn(idA)
	chain, err := thread.Open(ctx, to.store, to.head(idA))
	require.NoError(t, err)
	_, err = redact.Node(ctx, to.store, to.index, idA, chain.Last.Detail, redact.Options{Now: clock})
	require.NoError(t, err)
	later := func() time.Time { return time.Now().Add(time.Hour) }
	_, err = gc.Run(ctx, to.store, gc.Options{Homes: []string{to.home}, Now: later})
	require.NoError(t, err)
	_, err = to.store.Get(ctx, turn)
	require.ErrorIs(t, err, cas.ErrNotFound)

	done, err := to.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{chain.Last.Detail}, done.Redacted)
	_, err = to.store.Get(ctx, turn)
	require.ErrorIs(t, err, cas.ErrNotFound)
	sound(t, to)
}
