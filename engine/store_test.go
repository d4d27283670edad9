//go:build unix

package engine

import (
	"context"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// countingStore counts reads, in total and per node, and commits.
type countingStore struct {
	cas.Store
	gets, commits atomic.Int64
	each          sync.Map // of hashes to *atomic.Int64
}

// reads returns how often a node was read.
func (s *countingStore) reads(h cas.Hash) int64 {
	n, _ := s.each.LoadOrStore(h, &atomic.Int64{})
	return n.(*atomic.Int64).Load()
}

func (s *countingStore) Commit(ctx context.Context, nodes ...cas.Node) error {
	s.commits.Add(1)
	return s.Store.Commit(ctx, nodes...)
}

func (s *countingStore) Get(ctx context.Context, h cas.Hash) (cas.Node, error) {
	s.gets.Add(1)
	n, _ := s.each.LoadOrStore(h, &atomic.Int64{})
	n.(*atomic.Int64).Add(1)
	return s.Store.Get(ctx, h)
}

// killAt is the environment variable for the number of the change to the disk, from 1, before which a fake
// engine kills itself.
const killAt = "UWF_TEST_KILL_AT"

// deadlyFS kills this process before a change.
type deadlyFS struct {
	durable.FS
	left *atomic.Int64
}

func (d deadlyFS) count() {
	if d.left.Add(-1) == 0 {
		_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		select {}
	}
}

func (d deadlyFS) WriteTemp(path string, data []byte, perm fs.FileMode, flush durable.Flush) (string, error) {
	d.count()
	return d.FS.WriteTemp(path, data, perm, flush)
}

func (d deadlyFS) Rename(from, to string) error {
	d.count()
	return d.FS.Rename(from, to)
}

func (d deadlyFS) Append(path string, data []byte, perm fs.FileMode, flush durable.Flush) error {
	d.count()
	return d.FS.Append(path, data, perm, flush)
}

func (d deadlyFS) Extend(path string, data []byte, most int64) error {
	d.count()
	return d.FS.Extend(path, data, most)
}

func (d deadlyFS) Remove(path string) error {
	d.count()
	return d.FS.Remove(path)
}

// extend adds the next step of a thread to a batch.
func (w *world) extend(b *cas.Batch, head protocol.Hash) protocol.Hash {
	w.t.Helper()
	ctx := context.Background()
	t, err := thread.Open(ctx, b, head)
	require.NoError(w.t, err)
	wf, err := t.Workflow(ctx)
	require.NoError(w.t, err)
	out, err := b.AddValue(ctx, wf.Roles["planner"].Frontmatter, map[string]any{"$status": "again"})
	require.NoError(w.t, err)
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}})
	require.NoError(w.t, err)
	h, err := t.Append(ctx, b, protocol.Step{
		Role: "planner", Agent: "uwf-fake", Output: out, Detail: detail, SessionID: "s", ExtractedBy: protocol.ByValue,
	})
	require.NoError(w.t, err)
	return h
}

type index = heads.Heads

// archiving replaces Archive of heads with a function.
type archiving struct {
	index
	archive func() error
}

func (a archiving) Archive(context.Context, heads.Ended) error { return a.archive() }
