package step_test

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// A step flushes the log once, whatever it consists of, and nothing before its commit.
func TestFlushesOfAStep(t *testing.T) {
	t.Parallel()
	f, root := setup(t), t.TempDir()
	rec := durabletest.NewRecorder(durable.OS(), root)
	onDisk, err := fsstore.Open(t.Context(), filepath.Join(root, "cas"), fsstore.Options{FS: rec})
	require.NoError(t, err)
	for h, err := range f.store.All(t.Context(), "") {
		require.NoError(t, err)
		n, err := f.store.Get(t.Context(), h)
		require.NoError(t, err)
		require.NoError(t, onDisk.Commit(t.Context(), n))
	}
	f.store = onDisk
	begun := len(rec.Ops())

	instruction := f.batch()
	_, err = instruction.Add(t.Context(), protocol.Text("What to do now."))
	require.NoError(t, err)
	require.NoError(t, instruction.Put(t.Context()))
	b := f.batch()
	turn, err := step.AddTurn(t.Context(), b, protocol.Turn{Role: protocol.TurnAssistant, Content: "done"})
	require.NoError(t, err)
	require.NoError(t, b.Put(t.Context()))
	_, err = b.Compiled(t.Context(), f.typ)
	require.NoError(t, err)
	require.Empty(t, flushed(rec.Ops()[begun:]), "nothing durable names it yet")

	s := f.submission("planner", 1, "")
	s.Prompt, s.Detail.Turns = "what it was told", []protocol.Hash{turn}
	_, err = step.Submit(t.Context(), b, f.thread(onDisk), s)
	require.NoError(t, err)
	require.Equal(t, []string{"cas/log/00000001.seg"}, flushed(rec.Ops()[begun:]))
}

// flushed returns the flushed paths, in order.
func flushed(ops []durabletest.Op) (paths []string) {
	for _, op := range ops {
		if op.Flush == durable.FullFlush || op.Kind == durabletest.OpSyncFile || op.Kind == durabletest.OpSyncDir {
			paths = append(paths, op.Path)
		}
	}
	return paths
}
