package view_test

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// A summary changes with everything that a list shows.
func TestSummaries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var known view.Summaries
	of := func() view.Summary {
		listed := view.Listed(t.Context(), w.Reader.Heads, view.Filter{Ended: true}, func(err error) { require.NoError(t, err) })
		return known.Of(t.Context(), w.Engine, listed)[0]
	}
	first := of()
	require.NotEmpty(t, first.Title)
	require.Equal(t, protocol.StatusIdle, first.Status)
	require.Equal(t, first, of())

	title := "titled"
	require.NoError(t, w.Reader.Heads.SetFacts(t.Context(), w.thread, heads.Facts{Title: &title}))
	require.Equal(t, title, of().Title)
	w.step("more")
	require.NotEqual(t, first.Since, of().Since)

	require.False(t, of().Waits)
	require.NoError(t, os.WriteFile(w.Reader.Dirs.Config(), []byte("limits: {maxSteps: 1}\n"), 0o600))
	require.Equal(t, protocol.StatusSuspended, of().Status)
	require.True(t, of().Waits)

	w.step("done")
	require.Equal(t, protocol.StatusCompleted, of().Status)
}

// counting counts the nodes that are read.
type counting struct {
	cas.Store
	gets atomic.Int64
}

func (c *counting) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	c.gets.Add(1)
	return c.Store.Get(ctx, h)
}

// Lists of one home read a node once, whatever process they run in.
func TestSavedSummaries(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ctx := t.Context()
	model, err := thread.Open(ctx, w.Reader.Store, w.step("more"))
	require.NoError(t, err)
	b := cas.NewBatch(w.Reader.Store, time.Now)
	const n = 100
	for i := range n {
		start := model.Start
		start.Prompt = fmt.Sprint("task ", i)
		h, err := b.Add(ctx, start)
		require.NoError(t, err)
		require.NoError(t, b.Put(ctx))
		require.NoError(t, w.Reader.Heads.Add(ctx, fmt.Sprintf("01ARZ3NDEKTSV4RRFF%08d", i), h, heads.Facts{}))
	}
	store := &counting{Store: w.Reader.Store}
	w.Reader.Store = store
	list := func() (items []protocol.ThreadItem) {
		known := view.SavedSummaries(w.Engine)
		f := view.Filter{Known: known}
		for item := range view.Items(ctx, w.Engine, view.Listed(ctx, w.Reader.Heads, f, func(err error) { t.Error(err) }), f) {
			items = append(items, item)
		}
		known.Save(w.Engine)
		return items
	}
	sums := func() protocol.Stats {
		known := view.SavedSummaries(w.Engine)
		s, err := view.Stats(ctx, w.Engine, known, time.Time{}, []string{"workflow", "agent"})
		require.NoError(t, err)
		known.Save(w.Engine)
		return s
	}
	w.Reader.ReadOnly = true
	first, stats := list(), sums()
	require.Len(t, first, n+1)
	require.NoFileExists(t, w.Reader.Dirs.Summaries())
	w.Reader.ReadOnly = false
	require.Equal(t, first, list())
	require.FileExists(t, w.Reader.Dirs.Summaries())

	const few = 10 // such as workflows
	for range 2 {
		store.gets.Store(0)
		require.Equal(t, first, list())
		require.Equal(t, stats, sums())
		require.Empty(t, view.Inbox(ctx, w.Engine, func(err error) { t.Error(err) }))
		require.LessOrEqual(t, store.gets.Load(), int64(few))
	}
	require.NoError(t, os.WriteFile(w.Reader.Dirs.Config(), []byte("limits: {maxSteps: 1}\n"), 0o600))
	require.Len(t, view.Inbox(ctx, w.Engine, func(err error) { t.Error(err) }), 1, "limits are not saved")
	require.NoError(t, view.ForgetSummaries(w.Engine))
	require.NoFileExists(t, w.Reader.Dirs.Summaries())
}
