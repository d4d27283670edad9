package storeremote_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/util/durable"
)

// A client cannot store what the remote cannot read back: a single such line would damage the list of all threads.
func TestSwapsStayReadable(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Push(r, c.Head())
	title := strings.Repeat("x", remote.MaxFacts-100)
	for name, s := range map[string]remote.Swap{
		"an unknown end":        {Ended: &remote.Ended{Workflow: c.Workflow, Status: "lost", CompletedAt: 1}},
		"an end after all time": {Ended: &remote.Ended{Workflow: c.Workflow, Status: protocol.StatusCompleted, CompletedAt: math.MaxInt64}},
		"a long title":          {Facts: heads.Facts{Title: &title}},
	} {
		s.Thread, s.Head = redactedThread, c.Head()
		if err := r.Swap(t.Context(), s); err != nil {
			require.ErrorAs(t, err, new(*remote.FaultError), name)
		}
		for _, err := range r.Threads(t.Context(), remote.Filter{}) {
			require.NoError(t, err, name)
		}
		_, err := r.Thread(t.Context(), redactedThread)
		require.ErrorIs(t, err, heads.ErrNoThread, name)
	}
}

// A home's owner can end a thread whose workflow is unreadable. The clients can still list and read every thread.
func TestEndWithoutWorkflow(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Begin(r, redactedThread)
	c.Begin(r, otherThread)
	index := fileheads.Open(r.Path, durable.OS())
	require.NoError(t, index.Archive(t.Context(), heads.Ended{Thread: redactedThread, Head: c.Head(), Status: protocol.StatusCancelled}))
	n := 0
	for s, err := range r.Threads(t.Context(), remote.Filter{}) {
		require.NoError(t, err)
		require.NoError(t, s.Check())
		n++
	}
	require.Equal(t, 2, n)
	s, err := r.Thread(t.Context(), redactedThread)
	require.NoError(t, err)
	require.NoError(t, s.Check())
}

// The first request of a client can be one that stores nothing.
func TestOpenedAfterLock(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	require.NoError(t, r.Release(t.Context(), redactedThread, 1))
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Push(r.Open(cas.XXH3)(t), c.Head())
}
