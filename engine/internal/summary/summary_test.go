package summary_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/engine/internal/summary"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// nodes returns n nodes of each form.
func nodes(n int) map[protocol.Hash]summary.Node {
	all := map[protocol.Hash]summary.Node{}
	cost, model, prev := 0.25, "m", protocol.HashOf(3)
	for i := range n {
		h := protocol.HashOf(uint64(i+1) * 0x9E3779B97F4A7C15)
		node := summary.Node{Workflow: protocol.HashOf(7), Title: "Tïtle " + string(h), Dir: "/dir"}
		if i%2 > 0 {
			node.Step = &protocol.Step{Role: "r", Agent: "uwf-a", Detail: h, StartedAtMs: 1, CompletedAtMs: 2, Index: i}
			node.Partial = i%3 > 0
		}
		if i%4 > 1 {
			node.Next = &summary.Next{Status: protocol.StatusSuspended, Role: "r2", Counted: i, Visits: 4}
		}
		if i%8 > 4 {
			node.Step, node.Model = &protocol.Step{Prev: &prev, Detail: h, Usage: &protocol.Usage{Turns: 1, InputTokens: 2,
				CacheReadTokens: 3, CacheWriteTokens: 4, OutputTokens: 5, ReasoningTokens: 6, CostUSD: &cost, DurationMs: 7}}, &model
		}
		if i%16 > 12 {
			node.Ran, node.Totals = int64(i), &protocol.Totals{Steps: i, Usage: &protocol.Usage{CostUSD: &cost}}
		}
		if node.Step != nil {
			node.Steps, node.CompletedAt = node.Step.Index+1, node.Step.CompletedAtMs
		}
		all[h] = node
	}
	return all
}

func put(s *summary.Set, all map[protocol.Hash]summary.Node) {
	for h, n := range all {
		s.Put(h, n)
	}
}

func requireHas(t *testing.T, s *summary.Set, all map[protocol.Hash]summary.Node) {
	t.Helper()
	for h, want := range all {
		got, ok := s.Get(h)
		require.True(t, ok)
		require.Equal(t, want, got)
		got, ok = s.Glance(h)
		require.True(t, ok)
		want.Step = nil
		require.Equal(t, want, got)
	}
}

func TestSet(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "cache", "summaries")
	var first, second, third summary.Set
	all := nodes(200)
	put(&first, all)
	requireHas(t, &first, all)
	require.NoError(t, first.Save(durable.OS(), path))

	second.Load(path)
	requireHas(t, &second, all)
	_, ok := second.Get("0000000000000")
	require.False(t, ok)
	more := nodes(300)
	for h, n := range more { // also other content for a node
		n.Title = "new"
		more[h] = n
	}
	put(&second, more)
	requireHas(t, &second, more)
	require.NoError(t, second.Save(durable.OS(), path))
	third.Load(path)
	requireHas(t, &third, more)
}

func TestSaveOnlyWhatIsWorthIt(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "summaries")
	var few summary.Set
	put(&few, nodes(10))
	require.NoError(t, few.Save(durable.OS(), path))
	require.NoFileExists(t, path)

	var many, later summary.Set
	put(&many, nodes(100))
	require.NoError(t, many.Save(durable.OS(), path))
	later.Load(path)
	put(&later, nodes(200))
	require.NoError(t, os.Remove(path)) // by a redaction
	require.NoError(t, later.Save(durable.OS(), path))
	require.NoFileExists(t, path)
}

// Any damage makes a file count as empty.
// A file that another process wrote after a node was redacted stays as it is.
func TestWhatWasRemovedDoesNotComeBack(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "summaries")
	var first summary.Set
	put(&first, nodes(100))
	require.NoError(t, first.Save(durable.OS(), path))
	var old summary.Set
	old.Load(path)
	all := nodes(200)
	put(&old, all)
	require.NoError(t, summary.Forget(durable.OS(), path))
	var other summary.Set
	redacted := protocol.HashOf(0x9E3779B97F4A7C15)
	delete(all, redacted)
	put(&other, all)
	require.NoError(t, other.Save(durable.OS(), path))
	require.NoError(t, old.Save(durable.OS(), path))
	var last summary.Set
	last.Load(path)
	requireHas(t, &last, all)
	_, ok := last.Get(redacted)
	require.False(t, ok)
}

// The texts of nodes beyond the limit are not stored.
func TestTooMany(t *testing.T) {
	t.Parallel()
	var s summary.Set
	size := func() int64 {
		path := filepath.Join(t.TempDir(), "summaries")
		require.NoError(t, s.Save(durable.OS(), path))
		info, err := os.Stat(path)
		require.NoError(t, err)
		return info.Size()
	}
	for i := range 200_000 {
		s.Put(protocol.HashOf(uint64(i+1)), summary.Node{Workflow: protocol.HashOf(7)})
	}
	full := size()
	s.Put(protocol.HashOf(1<<40), summary.Node{Workflow: protocol.HashOf(7), Title: "one more"})
	require.Equal(t, full, size())
}

func TestDamage(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "summaries")
	var whole summary.Set
	all := nodes(64)
	put(&whole, all)
	require.NoError(t, whole.Save(durable.OS(), path))
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	requireEmpty := func(data []byte) {
		t.Helper()
		require.NoError(t, os.WriteFile(path, data, 0o600))
		var s summary.Set
		s.Load(path)
		for h := range all {
			_, ok := s.Get(h)
			require.False(t, ok)
		}
	}
	for at := 0; at < len(data); at += 1 + len(data)/300 {
		data[at] ^= 1
		requireEmpty(data)
		data[at] ^= 1
		requireEmpty(data[:at])
	}
	requireEmpty(append(data, 0))
}
