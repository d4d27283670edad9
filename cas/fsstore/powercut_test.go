package fsstore_test

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
	"github.com/united-workforce/uwf/util/sampletest"
)

// finished is a commit and the number of operations after which it was complete.
type finished struct {
	after int
	nodes []cas.Node
}

// After a power cut at any point, every node of a completed commit exists and verifies, and no file passes
// for another node.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flush string
		model durabletest.Model
		holds bool
	}{
		{"full", durabletest.Posix, true},
		{"full", durabletest.Ordered, true},
		{"batch", durabletest.Ordered, true},
		{"batch", durabletest.Posix, false},
		{"none", durabletest.Ordered, false},
	} {
		t.Run(fmt.Sprintf("%s on model %d", c.flush, c.model), func(t *testing.T) {
			t.Parallel()
			root := t.TempDir()
			rec := durabletest.NewRecorder(fast{durable.OS()}, root)
			written, commits := writeSteps(t, rec, root, c.flush)
			err := everyOutcome(t, rec.Ops(), c.model, written, commits)
			if c.holds {
				require.NoError(t, err)
			} else {
				require.Error(t, err, "the model is too kind, or this mode is better than we say")
			}
		})
	}
}

// everyOutcome simulates a power cut at every point until a check fails. A check depends only on the disk and
// on which commits are complete.
func everyOutcome(t *testing.T, ops []durabletest.Op, model durabletest.Model, written []cas.Node, commits []finished) error {
	t.Helper()
	base := t.TempDir()
	seen := map[string]bool{}
	for n := range len(ops) + 1 {
		for o := range durabletest.Replay(ops, n, model) {
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
func (fast) StartSync(string) error { return nil }
func (fast) SyncFile(string) error  { return nil }
func (fast) SyncDir(string) error   { return nil }

// writeSteps does what two steps do: one process puts a schema, another a turn as it happens; then everything
// is committed, including existing nodes.
func writeSteps(t *testing.T, rec *durabletest.Recorder, root, flush string) (written []cas.Node, commits []finished) {
	t.Helper()
	ctx := context.Background()
	engine := open(t, filepath.Join(root, "cas"), fsstore.Options{FS: rec, Flush: flush})
	agent := open(t, filepath.Join(root, "cas"), fsstore.Options{FS: rec, Flush: flush})
	for step := range 2 {
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
	}
	return written, commits
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
	return s.Put(ctx, written...)
}

// The names of a store's directories are flushed once, including one created by a process that never flushed
// it.
func TestNamesOfDirectoriesAreFlushedOnce(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), t.TempDir()
	rec := durabletest.NewRecorder(fast{durable.OS()}, root)
	dir := filepath.Join(root, "cas")
	s := open(t, dir, fsstore.Options{FS: rec, Flush: "full"})
	nodes := alike(t, 3)
	require.NoError(t, s.Put(ctx, nodes[0]))
	for i := range nodes {
		require.NoError(t, open(t, dir, fsstore.Options{FS: rec, Flush: "full"}).Commit(ctx, nodes[i]))
		made := slices.IndexFunc(rec.Ops(), func(op durabletest.Op) bool { return op.To == "cas/format.json" })
		got := slices.DeleteFunc(rec.Ops()[made:], func(op durabletest.Op) bool {
			return op.Kind != durabletest.OpSyncDir || op.Path != "cas/nodes"
		})
		require.Len(t, got, 1, "after commit %d", i)
	}
}

// alike returns nodes in the same directory.
func alike(t *testing.T, n int) (nodes []cas.Node) {
	for i := 0; len(nodes) < n; i++ {
		one := castest.Node(t, cas.XXH3, fmt.Sprint("node ", i))
		if len(nodes) == 0 || one.Hash[:2] == nodes[0].Hash[:2] {
			nodes = append(nodes, one)
		}
	}
	return nodes
}

// Many nodes cost one flush. After a power cut at any point, their remains block nothing, and after the
// commit they exist.
func TestPowerCutAmongMany(t *testing.T) {
	t.Parallel()
	ctx, root := t.Context(), t.TempDir()
	rec := durabletest.NewRecorder(whole{fast{durable.OS()}}, root)
	s := open(t, filepath.Join(root, "cas"), fsstore.Options{FS: rec, Flush: "full"})
	var nodes []cas.Node
	for i := range 520 {
		nodes = append(nodes, castest.Node(t, cas.XXH3, fmt.Sprint("node ", i)))
	}
	require.NoError(t, s.Make(ctx, 1))
	require.NoError(t, s.Put(ctx, nodes[0])) // by a process that doesn't flush
	made := len(rec.Ops())
	require.NoError(t, s.Commit(ctx, nodes...))
	ops := rec.Ops()
	flushes := slices.DeleteFunc(slices.Clone(ops[made:]), func(op durabletest.Op) bool {
		return op.Flush != durable.FullFlush && op.Kind != durabletest.OpSyncDir && op.Kind != durabletest.OpSyncFile && op.Kind != durabletest.OpSyncAll
	})
	require.Len(t, flushes, 1)
	for _, cut := range []struct {
		after   int
		commits []finished
	}{{made, nil}, {(made + len(ops)) / 2, nil}, {len(ops) - 1, nil}, {len(ops), []finished{{len(ops), nodes}}}} {
		few, sample := 0, sampletest.New(t)
		for o := range durabletest.Replay(ops, cut.after, durabletest.Posix) {
			if few++; few > 20 {
				break
			}
			if !sample() {
				continue
			}
			dir := t.TempDir()
			require.NoError(t, o.Write(dir))
			require.NoError(t, checkOutcome(t, dir, cut.after, nodes, cut.commits), o.Name)
		}
	}
}

// whole is a disk that can flush everything at once.
type whole struct{ fast }

func (whole) FlushesAll([]string) bool { return true }
func (whole) SyncAll(string) error     { return nil }
