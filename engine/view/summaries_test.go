package view_test

import (
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/view"
	"github.com/united-workforce/uwf/protocol"
)

// A summary changes with everything that a list shows.
func TestSummaries(t *testing.T) {
	w := newWorld(t)
	var known view.Summaries
	of := func() *view.Summary {
		listed := view.Listed(t.Context(), w.Reader.Heads, view.Filter{Ended: true}, func(err error) { require.NoError(t, err) })
		return known.Of(t.Context(), w.Engine, listed)[0]
	}
	first := of()
	require.NotEmpty(t, first.Title)
	require.Equal(t, protocol.StatusIdle, first.Status)
	require.Same(t, first, of())

	title := "titled"
	require.NoError(t, w.Reader.Heads.SetFacts(t.Context(), w.thread, heads.Facts{Title: &title}))
	require.Equal(t, title, of().Title)
	w.step("more")
	require.NotSame(t, first, of())
	require.Equal(t, of(), of())
	title = "again"
	require.NoError(t, w.Reader.Heads.SetFacts(t.Context(), w.thread, heads.Facts{Title: &title}))
	known.Of(t.Context(), w.Engine, nil) // a list without it
	require.Equal(t, title, of().Title)

	last := of()
	require.NoError(t, os.WriteFile(w.Reader.Dirs.Config(), []byte("limits: {maxSteps: 1}\n"), 0o600))
	require.NotSame(t, last, of()) // limits may have changed
	require.Equal(t, protocol.StatusSuspended, of().Status)
	require.True(t, of().Waits)

	last = of()
	require.NoError(t, os.MkdirAll(w.Reader.Dirs.Run(w.thread), 0o700))
	require.NotSame(t, last, of()) // a run may have started
	require.NotSame(t, of(), of()) // the directory is too new for a change to be visible in its time
	old := time.Now().Add(-time.Minute)
	require.NoError(t, os.Chtimes(w.Reader.Dirs.Run(w.thread), old, old))
	require.Same(t, of(), of())

	w.step("done")
	require.Equal(t, protocol.StatusCompleted, of().Status)
}
