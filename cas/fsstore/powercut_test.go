package fsstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// finished is a commit and the number of operations after which it was complete.
type finished struct {
	after int
	nodes []cas.Node
}

// After a power cut at any point, every node of a completed commit exists and verifies, and no record passes for
// another node.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	rec := durabletest.NewRecorder(fast{durable.OS()}, root)
	written, commits := writeSteps(t, rec, root)
	require.NoError(t, everyOutcome(t, rec.Ops(), written, commits))
}

// everyOutcome simulates a power cut at every point until a check fails. A check depends only on the disk and
// on which commits are complete.
func everyOutcome(t *testing.T, ops []durabletest.Op, written []cas.Node, commits []finished) error {
	t.Helper()
	base := t.TempDir()
	seen := map[string]bool{}
	for n := range len(ops) + 1 {
		for o := range durabletest.Replay(ops, n) {
			key := fmt.Sprint(countFinished(commits, n), o.Key())
			if seen[key] {
				continue
			}
			seen[key] = true
			dir := filepath.Join(base, "disk")
			require.NoError(t, o.Write(dir))
			if err := checkOutcome(t, dir, n, written, commits); err != nil {
				return fmt.Errorf("after %d operations, %s: %w", n, o.Name, err)
			}
			require.NoError(t, os.RemoveAll(dir))
		}
	}
	return nil
}

func countFinished(commits []finished, n int) int {
	count := 0
	for _, c := range commits {
		if c.after <= n {
			count++
		}
	}
	return count
}

// fast is a disk without flushes, which don't matter after the power cut.
type fast struct{ durable.FS }

func (f fast) WriteTemp(path string, data []byte, perm fs.FileMode, _ durable.Flush) (string, error) {
	return f.FS.WriteTemp(path, data, perm, durable.NoFlush)
}
func (fast) SyncFile(string) error { return nil }
func (fast) SyncDir(string) error  { return nil }

// writeSteps does what steps do: one process puts a schema, another a turn as it happens; then everything is
// committed, including existing nodes. In between, the log is compacted.
func writeSteps(t *testing.T, rec *durabletest.Recorder, root string) (written []cas.Node, commits []finished) {
	t.Helper()
	ctx := context.Background()
	engine := open(t, filepath.Join(root, "cas"), fsstore.Options{FS: rec})
	agent := open(t, filepath.Join(root, "cas"), fsstore.Options{FS: rec})
	for step := range 3 {
		var nodes []cas.Node
		for _, what := range []string{"schema", "turn %d", "step %d"} {
			if what != "schema" {
				what = fmt.Sprintf(what, step)
			}
			nodes = append(nodes, castest.Node(t, cas.XXH3, what))
		}
		require.NoError(t, engine.Put(ctx, nodes[0]))
		require.NoError(t, agent.Put(ctx, nodes[1]))
		require.NoError(t, agent.Commit(ctx, nodes...))
		written = append(written, nodes...)
		commits = append(commits, finished{len(rec.Ops()), nodes})
		if step < 2 {
			compact(t, engine)
		}
	}
	return written, commits
}

// compact packs all nodes.
func compact(t testing.TB, s *fsstore.Store) {
	t.Helper()
	require.NoError(t, compactOnce(t.Context(), s))
}

func checkOutcome(t *testing.T, dir string, n int, written []cas.Node, commits []finished) error {
	t.Helper()
	ctx := context.Background()
	s, err := fsstore.Open(ctx, filepath.Join(dir, "cas"), fsstore.Options{FS: fast{durable.OS()}})
	if err != nil {
		return err
	}
	for _, node := range written {
		if got, err := s.Get(ctx, node.Hash); err == nil {
			require.Equal(t, node, got, "never anything else")
		}
	}
	for _, c := range commits[:countFinished(commits, n)] {
		for _, node := range c.nodes {
			if _, err := s.Get(ctx, node.Hash); err != nil {
				return err
			}
		}
	}
	// Lost work is repeated, and remains of the power cut must not block it.
	if err := s.Commit(ctx, written...); err != nil {
		return err
	}
	for _, node := range written {
		if _, err := open(t, s.Dir(), fsstore.Options{}).Get(ctx, node.Hash); err != nil {
			return err
		}
	}
	return nil
}
