package remotetest

import (
	"context"
	"fmt"
	"iter"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/remote"
)

// Thread IDs.
const (
	idA, idB, idC = "01ARZ3NDEKTSV4RRFFQ69G5FAA", "01ARZ3NDEKTSV4RRFFQ69G5FAB", "01ARZ3NDEKTSV4RRFFQ69G5FAC"
)

// Chain is a local thread.
type Chain struct {
	Store    *fsstore.Store
	Workflow cas.Hash
	Heads    []cas.Hash // the start, then each step

	t      testing.TB
	schema cas.Hash
}

func clock() time.Time { return time.UnixMilli(1_780_000_000_000) }

// NewChain creates a start and some steps. All chains have the same workflow.
func NewChain(t testing.TB, a cas.Algorithm, prompt string, steps int) *Chain {
	t.Helper()
	ctx := context.Background()
	c := &Chain{Store: castest.NewStore(t, a), t: t}
	b := cas.NewBatch(c.Store, clock)
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object",
		"properties": map[string]any{"n": map[string]any{"type": "integer"}}})
	require.NoError(t, err)
	c.schema = schema
	c.Workflow, err = b.Add(ctx, protocol.Workflow{
		Name: "fix", Description: "d",
		Roles: map[string]protocol.Role{"r": {Description: "d", Goal: "g", Procedure: "p", Output: "o",
			Capabilities: []string{}, Frontmatter: schema}},
		Graph: map[string]protocol.GraphNode{},
	})
	require.NoError(t, err)
	start, err := b.Add(ctx, protocol.Start{Workflow: c.Workflow, Prompt: prompt, Cwd: "/"})
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	c.Heads = []cas.Hash{start}
	for n := range steps {
		c.Heads = append(c.Heads, c.After(c.Head(), n))
	}
	return c
}

// Head returns the newest node.
func (c *Chain) Head() cas.Hash { return c.Heads[len(c.Heads)-1] }

// After creates a step after a head, and returns it.
func (c *Chain) After(head cas.Hash, n int) cas.Hash {
	c.t.Helper()
	ctx := context.Background()
	chain, err := thread.Open(ctx, c.Store, head)
	require.NoError(c.t, err)
	b := cas.NewBatch(c.Store, clock)
	out, err := b.AddValue(ctx, c.schema, map[string]any{"n": n})
	require.NoError(c.t, err)
	turn, err := b.Add(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: fmt.Sprintf("turn %d after %s", n, head)})
	require.NoError(c.t, err)
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: []cas.Hash{turn}})
	require.NoError(c.t, err)
	next, err := chain.Append(ctx, b, protocol.Step{
		Role: "r", Agent: "uwf-test", EdgePrompt: "go", Cwd: "/", SessionID: "s", Output: out, Detail: detail,
		ExtractedBy: protocol.ByValue,
	})
	require.NoError(c.t, err)
	require.NoError(c.t, b.Commit(ctx))
	return next
}

// All returns the nodes reachable from a head, each after the nodes that it needs.
func (c *Chain) All(head cas.Hash) []cas.Hash {
	c.t.Helper()
	return collect(c.t, remote.Walk(context.Background(), c.Store, []cas.Hash{head}, nil))
}

// Record returns a node in transfer format.
func (c *Chain) Record(h cas.Hash) remote.Record {
	c.t.Helper()
	n, err := c.Store.Get(context.Background(), h)
	require.NoError(c.t, err)
	return remote.Record{Hash: h, File: cas.MarshalFile(n)}
}

// Push puts the nodes of a head to a remote.
func (c *Chain) Push(r remote.Remote, head cas.Hash) {
	c.t.Helper()
	missing, err := missingFrom(c.t.Context(), r, c.All(head))
	require.NoError(c.t, err)
	different, err := remote.PutAll(c.t.Context(), r, func(yield func(remote.Record, error) bool) {
		for _, h := range missing {
			if !yield(c.Record(h), nil) {
				return
			}
		}
	})
	require.NoError(c.t, err)
	require.Empty(c.t, different)
}

// Begin adds a thread to a remote.
func (c *Chain) Begin(r remote.Remote, id string) {
	c.t.Helper()
	c.Push(r, c.Head())
	require.NoError(c.t, r.Swap(c.t.Context(), remote.Swap{Thread: id, Head: c.Head()}))
}

// tombstone returns the tombstone of a node.
func (c *Chain) tombstone(h cas.Hash, reason string) remote.Record {
	c.t.Helper()
	n, err := c.Store.Get(context.Background(), h)
	require.NoError(c.t, err)
	file, err := cas.MarshalTombstone(cas.Tombstone{Hash: h, Type: n.Type, Reason: reason, At: 1})
	require.NoError(c.t, err)
	return remote.Record{Hash: h, File: file}
}

// collect returns everything that a sequence yields.
func collect[T any](t testing.TB, all iter.Seq2[T, error]) []T {
	t.Helper()
	var out []T
	for v, err := range all {
		require.NoError(t, err)
		out = append(out, v)
	}
	return out
}

// failure returns the error at the end of a sequence.
func failure[T any](all iter.Seq2[T, error]) error {
	for _, err := range all {
		if err != nil {
			return err
		}
	}
	return nil
}

func hashesOf(records []remote.Record) []cas.Hash {
	hashes := make([]cas.Hash, len(records))
	for i, r := range records {
		hashes[i] = r.Hash
	}
	return hashes
}

func reversed[T any](list []T) []T {
	list = slices.Clone(list)
	slices.Reverse(list)
	return list
}

// missingFrom is like [remote.Remote.Missing] for any number of hashes.
func missingFrom(ctx context.Context, r remote.Remote, hashes []cas.Hash) ([]cas.Hash, error) {
	var missing []cas.Hash
	for part := range slices.Chunk(hashes, remote.MaxHashes) {
		found, err := r.Missing(ctx, part)
		if err != nil {
			return nil, err
		}
		missing = append(missing, found...)
	}
	return missing, nil
}
