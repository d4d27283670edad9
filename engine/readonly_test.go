//go:build unix

package engine

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// contents returns the content, mode and time of all files below a directory.
func contents(t *testing.T, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		text := info.Mode().String() + info.ModTime().String()
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			text += string(data)
		}
		files[path] = text
		return nil
	}))
	return files
}

// A read-only engine can show everything, changes nothing, and refuses changes.
func TestReadOnly(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "ready,done")
	id, done := w.start(), w.start()
	w.mustStep(id, StepOptions{})
	_, err := w.Do(t.Context(), done, Work{Steps: UntilEnd})
	require.NoError(t, err)
	require.NoError(t, os.Remove(w.Reader.RunDir(id).File(runfiles.TotalsFile)), "a sum that would be kept")
	before := contents(t, w.Reader.Dirs.Home)

	store, err := fsstore.Open(t.Context(), w.Reader.Dirs.Store, fsstore.Options{})
	require.NoError(t, err)
	reader := &Engine{Reader: status.Reader{
		ReadOnly: true, Env: w.Reader.Env, Dirs: w.Reader.Dirs, FS: durable.OS(), Store: store,
		Heads: fileheads.Open(w.Reader.Dirs.Home, durable.OS()), Config: w.Reader.Config,
	}}
	ctx := context.Background()
	shown, err := reader.Reader.Show(ctx, id)
	require.NoError(t, err)
	require.Equal(t, "worker", string(shown.CurrentRole))
	sum, err := reader.Reader.Totals(ctx, id, shown.Head)
	require.NoError(t, err)
	require.Equal(t, 1, sum.Steps)
	require.NotNil(t, reader.Reader.LastRun(ctx, id))
	_, err = reader.Reader.Flight(ctx, id)
	require.NoError(t, err)
	running, err := reader.Reader.Running(ctx)
	require.NoError(t, err)
	require.Empty(t, running)
	standings, err := heads.ThreadStates(ctx, reader.Reader.Heads)
	require.NoError(t, err)
	require.Len(t, standings, 2)
	for item := range reader.Reader.Overview().Threads(ctx, []status.Listed{{Thread: id, Head: shown.Head}, {Thread: done, Ended: standings[done].End}}) {
		require.Empty(t, item.Error)
	}

	refused := map[string]error{
		"kill":    reader.Kill(ctx, id),
		"poke":    second(reader.once(ctx, id, Work{Do: DoPoke, Prompt: "again"})),
		"step":    second(reader.Step(ctx, id, StepOptions{})),
		"resume":  second(reader.once(ctx, done, Work{Do: DoResume, Prompt: "more"})),
		"stop":    second(reader.Stop(ctx, id)),
		"fork":    second(reader.Fork(ctx, shown.Head, ForkOptions{})),
		"start":   second(reader.Start(ctx, protocol.Start{Workflow: w.workflow, Prompt: "task", Cwd: w.dir}, StartOptions{})),
		"alone":   second(reader.Exclusive(ctx, id)),
		"worker":  reader.Worker(ctx, id, 0, os.Stderr),
		"do it":   second(reader.Do(ctx, id, Work{Steps: UntilEnd})),
		"promise": second(reader.Background(ctx, id, Work{})),
	}
	for what, err := range refused {
		var coded *protocol.Error
		require.ErrorAs(t, err, &coded, what)
	}
	require.Equal(t, before, contents(t, w.Reader.Dirs.Home))
}

func second[T any](_ T, err error) error { return err }
