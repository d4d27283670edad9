package bundle_test

import (
	"context"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsck"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/record"
	"github.com/united-workforce/uwf/cas/redact"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
)

// sealed seals a thread and stores the seals.
func (w *world) sealed(id string) (cas.Seal, int) {
	w.t.Helper()
	k := seal.NewKeeper(w.store)
	got, err := k.Seal(context.Background(), w.head(id))
	require.NoError(w.t, err)
	require.NoError(w.t, k.Flush(context.Background()))
	return got, k.New
}

// A seal distinguishes two runs that hashes can't distinguish; a bundle contains it, and a home that has
// sealed one run rejects a bundle of the other.
func TestSealDistinguishesCollisions(t *testing.T) {
	t.Parallel()
	one, two, output := collided(t)
	a, _ := one.sealed(idA)
	b, _ := two.sealed(idA)
	require.NotEqual(t, a, b)

	report, err := verify(one.export(idA))
	require.NoError(t, err)
	require.True(t, report.Threads[0].Sealed)
	require.Equal(t, a.String(), report.Threads[0].Seal)

	// A bundle with the seal of one and the content of the other.
	parts, lie := takeApart(t, one.export(idA)), takeApart(t, two.export(idA))
	lie.head = parts.head
	_, err = verify(lie.bytes())
	var wrong *cas.SealError
	require.ErrorAs(t, err, &wrong)

	// Replace the file in the store.
	n, err := two.store.Get(t.Context(), output)
	require.NoError(t, err)
	castest.FindRecord(t, one.store.Dir(), output).Replace(cas.MarshalFile(n))
	_, err = one.store.Get(t.Context(), output)
	require.NoError(t, err, "the hash does not tell")
	check, err := fsck.Run(t.Context(), one.store, fsck.Options{Home: one.home, Now: clock})
	require.NoError(t, err)
	require.Len(t, check.Faults, 1, "one change is one fault")
	require.Equal(t, fsck.Seal, check.Faults[0].Kind)
	require.Equal(t, output, check.Faults[0].Hash)
	require.Equal(t, []string{idA}, check.Faults[0].Threads)
	m, err := bundle.Collect(t.Context(), one.store, one.index, []string{idA})
	require.NoError(t, err)
	_, err = bundle.Write(t.Context(), &bytesSpool{}, one.store, m, nil)
	require.ErrorAs(t, err, &wrong, "it is not passed on")
}

// Importing a bundle of a sealed thread also seals it.
func TestSealTravels(t *testing.T) {
	t.Parallel()
	from, to := sample(t), newWorld(t, cas.XXH3)
	want, _ := from.sealed(idA)
	data := from.export()
	_, err := to.imports(data, bundle.ImportOptions{Register: true})
	require.NoError(t, err)
	kept, err := to.store.Seal(to.head(idA))
	require.NoError(t, err)
	require.Equal(t, want, kept)
	kept, err = to.store.Seal(to.head(idC))
	require.NoError(t, err)
	require.True(t, kept.IsZero(), "only what was sealed is")
	require.Equal(t, data, to.export())
	sound(t, to)
}

// lastTurn returns the newest turn of a thread's newest step.
func (w *world) lastTurn(id string) cas.Hash {
	w.t.Helper()
	chain, err := thread.Open(context.Background(), w.store, w.head(id))
	require.NoError(w.t, err)
	refs, err := w.store.Get(context.Background(), chain.Last.Detail)
	require.NoError(w.t, err)
	turns, err := graph.Refs(context.Background(), w.store, refs)
	require.NoError(w.t, err)
	return turns[len(turns)-1]
}

// Redacted nodes are exported as tombstones. A seal stays unchanged and covers them; without one they are
// listed as unproven. An import neither restores what was redacted here nor redacts what is intact here.
func TestTombstonesTravel(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	from := sample(t)
	whole := from.export(idB)
	want, _ := from.sealed(idB)
	turn := from.lastTurn(idB)
	_, err := redact.Node(ctx, from.store, from.index, idB, turn, redact.Options{Reason: "a key", Now: clock})
	require.NoError(t, err)
	again, fresh := from.sealed(idB)
	require.Equal(t, want, again)
	require.Zero(t, fresh)

	data := from.export(idB)
	report, err := verify(data)
	require.NoError(t, err)
	require.Equal(t, []bundle.FoundTombstone{{Hash: turn, Type: report.Tombstones[0].Type, Reason: "a key", At: clock().UnixMilli(), Sealed: true}}, report.Tombstones)
	require.Equal(t, want.String(), report.Threads[0].Seal)

	to := newWorld(t, cas.XXH3)
	first, err := to.imports(data, bundle.ImportOptions{Register: true})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{turn}, first.Redactions)
	_, err = to.store.Get(ctx, turn)
	redacted, ok := cas.AsRedacted(err)
	require.True(t, ok)
	require.Equal(t, "a key", redacted.Tombstone.Reason)
	require.Equal(t, data, to.export(idB))
	sound(t, to)

	done, err := to.imports(whole, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Empty(t, done.Redacted)
	_, err = to.store.Get(ctx, turn)
	require.NoError(t, err, "anybody may have made that tombstone: content takes its place")
	sound(t, to)

	_, err = redact.Node(ctx, to.store, to.index, idB, turn, redact.Options{Reason: "here", Now: clock})
	require.NoError(t, err)
	done, err = to.imports(whole, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{turn}, done.Redacted)
	_, err = to.store.Get(ctx, turn)
	_, ok = cas.AsRedacted(err)
	require.True(t, ok, "what was redacted here does not come back")

	other := newWorld(t, cas.XXH3)
	_, err = other.imports(whole, bundle.ImportOptions{})
	require.NoError(t, err)
	done, err = other.imports(data, bundle.ImportOptions{})
	require.NoError(t, err)
	require.Equal(t, []cas.Hash{turn}, done.Intact)
	_, err = other.store.Get(ctx, turn)
	require.NoError(t, err)
}

// Any damage to a seal is detected. An unreadable seal is quarantined; a readable one that doesn't match
// stays for a person to decide.
func TestDamagedSeal(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, cas.XXH3)
	w.start(idA)
	w.sealed(idA)
	r := castest.FindRecord(t, w.store.Dir(), w.head(idA), record.Seal)
	good := r.Body()
	for i := range good {
		r.Overwrite(i, []byte{good[i] ^ 1<<(i%8)})
		report, err := fsck.Run(ctx, w.store, fsck.Options{Home: w.home, Now: clock})
		require.NoError(t, err)
		require.Len(t, report.Faults, 1, "byte %d", i)
		require.Equal(t, fsck.Seal, report.Faults[0].Kind)
		require.Equal(t, []string{idA}, report.Faults[0].Threads)
		r.Overwrite(i, good[i:i+1])
	}
	r.Flip()
	report, err := fsck.Run(ctx, w.store, fsck.Options{Home: w.home, Now: clock, Repair: true})
	require.NoError(t, err)
	require.True(t, report.Sound())
	require.Contains(t, report.Faults[0].Repaired, "quarantine")
	w.sealed(idA)
	require.Equal(t, good, castest.FindRecord(t, w.store.Dir(), w.head(idA), record.Seal).Body())

	other := cas.Seal{1}
	castest.Forge(t, w.store.Dir(), record.Seal, w.head(idA).Number(),
		binary.BigEndian.AppendUint32(other[:], record.Checksum(other[:])))
	report, err = fsck.Run(ctx, w.store, fsck.Options{Home: w.home, Now: clock, Repair: true})
	require.NoError(t, err)
	require.False(t, report.Sound())
}

// A forged tombstone over a sealed node is detected.
func TestForgedTombstone(t *testing.T) {
	t.Parallel()
	w := sample(t)
	w.sealed(idB)
	turn := w.lastTurn(idB)
	n, err := w.store.Get(t.Context(), turn)
	require.NoError(t, err)
	for _, forged := range []cas.Seal{{}, {1}} {
		file, err := cas.MarshalTombstone(cas.Tombstone{Hash: turn, Type: n.Type, Seal: forged})
		require.NoError(t, err)
		castest.Forge(t, w.store.Dir(), record.Tombstone, turn.Number(), file)
		report, err := fsck.Run(t.Context(), w.store, fsck.Options{Home: w.home, Now: clock})
		require.NoError(t, err)
		require.Len(t, report.Faults, 1)
		require.Equal(t, fsck.Seal, report.Faults[0].Kind)
		require.Len(t, report.Tombstones, 1)
		require.False(t, report.Tombstones[0].Sealed)
		require.Equal(t, []string{idB}, report.Tombstones[0].Threads)
		m, err := bundle.Collect(t.Context(), w.store, w.index, []string{idB})
		require.NoError(t, err)
		_, err = bundle.Write(t.Context(), &bytesSpool{}, w.store, m, nil)
		require.Error(t, err)
	}
}
