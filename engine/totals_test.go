//go:build unix

package engine

import (
	"bytes"
	"context"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// summed returns the totals of a thread, and the number of nodes read for them.
func (w *world) summed(id string) (protocol.Totals, int64) {
	w.t.Helper()
	counting := &countingStore{Store: w.Reader.Store}
	e := *w.Engine
	e.Reader.Store = counting
	sum, err := e.Reader.Totals(context.Background(), id, w.head(id))
	require.NoError(w.t, err)
	return sum, counting.gets.Load()
}

// walked returns the totals computed from the steps.
func (w *world) walked(id string) protocol.Totals {
	w.t.Helper()
	var sum protocol.Totals
	t, err := thread.Open(context.Background(), w.Reader.Store, w.head(id))
	require.NoError(w.t, err)
	for step, err := range t.Steps(context.Background()) {
		require.NoError(w.t, err)
		sum.Add(step.Step)
	}
	return sum
}

// requireFlat checks that the totals are right and didn't need the chain.
func (w *world) requireFlat(id string) {
	w.t.Helper()
	sum, reads := w.summed(id)
	require.Equal(w.t, w.walked(id), sum)
	require.LessOrEqual(w.t, reads, int64(2), "the head and the start")
}

func TestTotalsReadNoMoreThanTheHead(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	w := newWorld(t, "again")
	id := w.start()
	sum, _ := w.summed(id)
	require.Zero(t, sum)
	for range 3 {
		w.mustStep(id, StepOptions{})
		w.requireFlat(id)
	}
	for range 2 { // replaced steps no longer count
		_, err := w.Poke(ctx, id, "once more", StepOptions{})
		require.NoError(t, err)
		w.requireFlat(id)
	}
	w.mustStep(id, StepOptions{})
	w.requireFlat(id)

	// A chain from elsewhere is read once.
	w.lengthen(id, 50)
	sum, reads := w.summed(id)
	require.Equal(t, w.walked(id), sum)
	require.Greater(t, reads, int64(40))
	w.requireFlat(id)
	fork, err := w.Fork(ctx, *w.readStep(w.head(id)).Prev, ForkOptions{})
	require.NoError(t, err)
	w.summed(fork)
	w.requireFlat(fork)
	entries, err := os.ReadDir(w.Reader.RunDir(fork).Path)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing but the sum")
}

func TestTotalsOfAThreadThatEndedAndWentOn(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id := w.start()
	w.mustStep(id, StepOptions{})
	require.True(t, w.mustStep(id, StepOptions{}).Done)
	w.requireFlat(id)
	w.plays("ready,done,retry")
	_, err := w.Resume(context.Background(), id, "there is more", StepOptions{})
	require.NoError(t, err)
	w.requireFlat(id)
}

// The totals always match the steps, whatever the file contains.
func TestTotalsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.lengthen(id, 6)
	want, _ := w.summed(id)
	require.Equal(t, w.walked(id), want)
	path := w.Reader.RunDir(id).File(runfiles.TotalsFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	encode := func(marks ...budget.Mark) []byte {
		data, err := budget.EncodeTotals(marks)
		require.NoError(t, err)
		return data
	}
	for name, data := range map[string][]byte{
		"empty":             nil,
		"torn":              good[:len(good)/2],
		"a changed number":  bytes.Replace(good, []byte(`"steps":6`), []byte(`"steps":7`), 1),
		"another version":   bytes.Replace(good, []byte(`"version":4`), []byte(`"version":2`), 1),
		"another chain":     encode(budget.Mark{Head: "0000000000000", Sums: budget.Sums{Totals: protocol.Totals{Steps: 6}}}),
		"a wrong count":     encode(budget.Mark{Head: w.head(id), Sums: budget.Sums{Totals: protocol.Totals{Steps: 5}}}),
		"not what it seems": []byte(`{"version":4,"check":0,"marks":{}}`),
	} {
		require.NotEqual(t, string(good), string(data), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		got, _ := w.summed(id)
		require.Equal(t, want, got, name)
		w.requireFlat(id)
	}

	// An unwritable file is not an error.
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	got, _ := w.summed(id)
	require.Equal(t, want, got)
	entries, err := os.ReadDir(w.Reader.RunDir(id).Path)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
}
