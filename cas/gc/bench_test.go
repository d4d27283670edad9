package gc_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/protocol"
)

const garbageNodes = 1000

// litterOnce puts new garbage.
func (w *world) litterOnce(round int) {
	batch := w.batch()
	for i := range garbageNodes {
		_, err := batch.Add(w.t.Context(), protocol.Text(fmt.Sprint("garbage ", round, " ", i)))
		require.NoError(w.t, err)
	}
	require.NoError(w.t, batch.Put(w.t.Context()))
}

// BenchmarkFind looks for garbage among 1,000 nodes.
func BenchmarkFind(b *testing.B) {
	w := newWorld(b)
	w.start(firstThread)
	w.litterOnce(0)
	for b.Loop() {
		w.collect(gc.Options{DryRun: true})
	}
}

// BenchmarkCollect removes 1,000 nodes.
func BenchmarkCollect(b *testing.B) {
	w := newWorld(b)
	w.start(firstThread)
	for i := 0; b.Loop(); i++ {
		b.StopTimer()
		w.litterOnce(i)
		b.StartTimer()
		w.collect(gc.Options{})
	}
}
