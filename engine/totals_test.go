//go:build unix

package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/rundir"
)

// summed is what a thread has cost, and how many nodes were read to tell.
func (w *world) summed(id string) (protocol.Totals, int64) {
	w.t.Helper()
	counting := &countingStore{Store: w.Store}
	e := *w.Engine
	e.Store = counting
	sum, err := e.Totals(context.Background(), id, w.head(id))
	require.NoError(w.t, err)
	return sum, counting.gets.Load()
}

// walked is the same, from the steps alone.
func (w *world) walked(id string) protocol.Totals {
	w.t.Helper()
	var sum protocol.Totals
	t, err := thread.Open(context.Background(), w.Store, w.head(id))
	require.NoError(w.t, err)
	for step, err := range t.Steps(context.Background()) {
		require.NoError(w.t, err)
		sum.Add(step.Step)
	}
	return sum
}

// requireFlat says that the sum is right and was told without reading the chain.
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
	for range 2 { // the step that is replaced no longer counts
		_, err := w.Poke(ctx, id, "once more", StepOptions{})
		require.NoError(t, err)
		w.requireFlat(id)
	}
	w.mustStep(id, StepOptions{})
	w.requireFlat(id)

	// A chain that came from elsewhere is read once.
	w.lengthen(id, 50)
	sum, reads := w.summed(id)
	require.Equal(t, w.walked(id), sum)
	require.Greater(t, reads, int64(40))
	w.requireFlat(id)
	fork, err := w.Fork(ctx, *w.readStep(w.head(id)).Prev)
	require.NoError(t, err)
	w.summed(fork)
	w.requireFlat(fork)
	entries, err := os.ReadDir(w.runDir(fork).path)
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

// Whatever is in the file, the sum is that of the steps.
func TestTotalsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again")
	id := w.start()
	w.lengthen(id, 6)
	want, _ := w.summed(id)
	require.Equal(t, w.walked(id), want)
	path := w.runDir(id).file(rundir.TotalsFile)
	good, err := os.ReadFile(path)
	require.NoError(t, err)
	encode := func(marks ...mark) []byte {
		data, err := encodeTotals(marks)
		require.NoError(t, err)
		return data
	}
	for name, data := range map[string][]byte{
		"empty":             nil,
		"torn":              good[:len(good)/2],
		"a changed number":  bytes.Replace(good, []byte(`"steps":6`), []byte(`"steps":7`), 1),
		"a changed sum":     bytes.Replace(good, []byte(`"durationMs":`), []byte(`"durationMs":9`), 1),
		"another version":   bytes.Replace(good, []byte(`"version":3`), []byte(`"version":2`), 1),
		"another chain":     encode(mark{Head: "0000000000000", Sums: sums{Totals: protocol.Totals{Steps: 6}}}),
		"a wrong count":     encode(mark{Head: w.head(id), Sums: sums{Totals: protocol.Totals{Steps: 5}}}),
		"not what it seems": []byte(`{"version":3,"check":0,"marks":{}}`),
	} {
		require.NotEqual(t, string(good), string(data), name)
		require.NoError(t, os.WriteFile(path, data, 0o600))
		got, _ := w.summed(id)
		require.Equal(t, want, got, name)
		w.requireFlat(id)
	}

	// A place that cannot be written does not matter.
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700))
	got, _ := w.summed(id)
	require.Equal(t, want, got)
	entries, err := os.ReadDir(w.runDir(id).path)
	require.NoError(t, err)
	require.Len(t, entries, 1, "nothing is left behind")
}

// What is known only in part is a lower bound, and says of how many steps.
func TestTotalsSurviveTheFile(t *testing.T) {
	t.Parallel()
	cost := 0.1
	var sum protocol.Totals
	for _, u := range []*protocol.Usage{nil, {OutputTokens: 3}, {InputTokens: 1, CostUSD: &cost}, {CostUSD: &cost}, {CostUSD: &cost}} {
		sum.Add(protocol.Step{StartedAtMs: 5, CompletedAtMs: 7, Usage: u})
	}
	require.Equal(t, 1, sum.StepsWithoutUsage)
	require.Equal(t, 2, sum.StepsWithoutCost)
	require.EqualValues(t, 10, sum.DurationMs)
	marks := []mark{{Head: cas.Hash("0000000000000"), Sums: sums{Totals: sum}}}
	data, err := encodeTotals(marks)
	require.NoError(t, err)
	require.Equal(t, marks, decodeTotals(data), "to the last bit")
}

func FuzzTotals(f *testing.F) {
	good, err := encodeTotals([]mark{{Head: "0000000000000", Sums: sums{Totals: protocol.Totals{Steps: 1}}}})
	require.NoError(f, err)
	for _, seed := range [][]byte{good, good[:20], nil, []byte("null"), []byte(`{"version":1,"marks":[null]}`)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		marks := decodeTotals(data)
		if marks == nil {
			return
		}
		again, err := encodeTotals(marks)
		require.NoError(t, err)
		require.Equal(t, marks, decodeTotals(again))
		require.True(t, json.Valid(again))
	})
}
