package storeremote_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
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

// The first request of a client can be one that stores nothing.
func TestOpenedAfterLock(t *testing.T) {
	t.Parallel()
	r := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	require.NoError(t, r.Release(t.Context(), redactedThread, 1))
	c := remotetest.NewChain(t, cas.XXH3, "p", 1)
	c.Push(r.Open(cas.XXH3)(t), c.Head())
}
