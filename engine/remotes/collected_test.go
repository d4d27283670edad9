package remotes_test

import (
	"context"
	"iter"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/gc"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

// slow is a remote during whose transfers something else happens.
type slow struct {
	remote.Remote
	meanwhile func()
}

func (r slow) Get(ctx context.Context, hashes []cas.Hash) iter.Seq2[remote.Record, error] {
	r.meanwhile()
	return r.Remote.Get(ctx, hashes)
}

func (r slow) Put(ctx context.Context, records []remote.Record) ([]cas.Hash, error) {
	r.meanwhile()
	return r.Remote.Put(ctx, records)
}

// A collection doesn't wait for a transfer. If it removes a node that a pull relies on, the pull fetches it.
func TestCollectedDuringTransfers(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	there := remotetest.NewDirectory(t, cas.XXH3, time.Now)
	ann, bob := newSide(t, there), newSide(t, there)
	collect := func(s *side) int {
		report, err := gc.Run(ctx, s.Store, gc.Options{Homes: []string{s.dir}, Now: func() time.Time { return time.Now().Add(time.Minute) }})
		require.NoError(t, err)
		return report.Freed
	}
	id := ann.start()
	head := ann.step(id, 1)
	collections := 0
	ann.Remote = slow{there, func() { collections++; collect(ann) }}
	result, err := ann.push(id)
	require.NoError(t, err)
	require.Equal(t, "added", result)
	require.Positive(t, collections)

	step, err := cas.Read[protocol.Step](ctx, ann.Store, head)
	require.NoError(t, err)
	known, err := ann.Store.Get(ctx, *step.Prompt)
	require.NoError(t, err)
	require.NoError(t, bob.Store.Put(ctx, known))
	removed := 0
	bob.Remote = slow{there, func() { removed += collect(bob) }}
	result, err = bob.pull(id)
	require.NoError(t, err)
	require.Equal(t, "added", result)
	require.Equal(t, 1, removed, "a pull had counted on it")
	for n, err := range graph.Walk(ctx, bob.Store, []cas.Hash{bob.head(id)}, graph.WalkOptions{FollowTypes: true}) {
		require.NoError(t, err, "node %s", n.Hash)
	}
}
