package gc_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
)

// Seals of needed nodes stay; seals of garbage are removed with it, as are those left by a killed collector.
func TestSeals(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	w := newWorld(t)
	head := w.start("01ARZ3NDEKTSV4RRFFQ69G5FAA")
	b := w.batch()
	garbage, err := b.Add(ctx, protocol.Text("nobody needs this"))
	require.NoError(t, err)
	left, err := b.Add(ctx, protocol.Text("nor this"))
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	keeper := seal.NewKeeper(w.store)
	for _, h := range []cas.Hash{head, garbage, left} {
		_, err := keeper.Seal(ctx, h)
		require.NoError(t, err)
	}
	require.NoError(t, keeper.Flush(ctx))
	_, err = w.store.Quarantine(ctx, left)
	require.NoError(t, err)

	later := func() time.Time { return time.Now().Add(time.Hour) }
	for _, dry := range []bool{true, false} {
		report, err := gc.Run(ctx, w.store, gc.Options{Homes: []string{w.home}, Now: later, DryRun: dry})
		require.NoError(t, err)
		require.Equal(t, 1, report.Freed)
		require.Equal(t, 2, report.Seals)
	}
	for h, want := range map[cas.Hash]bool{head: true, garbage: false, left: false} {
		kept, err := w.store.Seal(h)
		require.NoError(t, err)
		require.Equal(t, want, !kept.IsZero())
	}
}
