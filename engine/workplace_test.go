//go:build unix

package engine

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/hints"
	"github.com/united-workforce/uwf/util/prosetest"
)

// elsewhere returns a directory outside the threads' directories.
func (w *world) elsewhere() string {
	w.t.Helper()
	dir := filepath.Join(filepath.Dir(w.dir), "elsewhere")
	require.NoError(w.t, os.Mkdir(dir, 0o755))
	return dir
}

// startIn starts a thread with a prompt, in a directory.
func (w *world) startIn(prompt, dir string) string {
	w.t.Helper()
	id, err := w.Start(context.Background(), protocol.Start{Workflow: w.workflow, Prompt: prompt, Cwd: dir}, StartOptions{})
	require.NoError(w.t, err)
	return id
}

func TestALocationOutsideIsRefusedBeforeAnyoneIsPaid(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outside,done")
	dir := w.elsewhere()
	id := w.startIn(dir, w.dir)
	w.mustStep(id, StepOptions{})
	_, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeFailed, dir, w.dir)
	prosetest.Text(t, hints.All("", e))
	require.Len(t, w.runs(), 1)
	require.Equal(t, e.Message, w.show(id).Error.Message, "whoever asks later is told")

	w.config.AllowLocations = []string{dir}
	require.True(t, w.mustStep(id, StepOptions{}).Done)
	require.Equal(t, dir, w.readStep(w.head(id)).Cwd)
}

func TestTheHomeIsNeverALocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outside,done")
	w.config.AllowLocations = []string{"/"}
	id := w.startIn(w.Reader.Dirs.Home, w.dir) // it is also HOME
	w.mustStep(id, StepOptions{})
	_, err := w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeFailed)
}

// Starting a thread among hooks or keys gives a warning before the thread exists, and so does moving one
// there.
func TestNoThreadIsStartedAmongHooks(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outside,done")
	hooks := filepath.Join(w.dir, ".git", "hooks")
	require.NoError(t, os.MkdirAll(hooks, 0o755))
	_, err := w.Start(context.Background(), protocol.Start{Workflow: w.workflow, Prompt: "task", Cwd: hooks}, StartOptions{})
	e := requireCode(t, err, protocol.CodeFailed, hooks)
	require.Contains(t, hints.All("", e)[0], `allowLocations: ["`+hooks+`"]`)
	id := w.startIn("task", w.dir)
	_, err = w.Step(context.Background(), id, StepOptions{Cwd: hooks})
	requireCode(t, err, protocol.CodeFailed, hooks)
	w.mustStep(id, StepOptions{})

	w.config.AllowLocations = []string{hooks}
	w.startIn("task", hooks)
}

// The location of a fork and of a replacing step is checked like any step's.
func TestNoWayAroundTheLocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outside,done")
	dir := w.elsewhere()
	w.config.AllowLocations = []string{dir}
	id := w.startIn(dir, w.dir)
	first := w.mustStep(id, StepOptions{})
	w.plays("outside,$SUSPEND")
	w.config.AllowLocations = []string{dir}
	second := w.mustStep(id, StepOptions{})
	require.Equal(t, protocol.StatusSuspended, second.Status)

	w.config.AllowLocations = nil
	ctx := context.Background()
	ran := len(w.runs())
	_, err := w.Resume(ctx, id, "go on", StepOptions{})
	requireCode(t, err, protocol.CodeFailed, dir)
	_, err = w.Poke(ctx, id, "once more", StepOptions{})
	requireCode(t, err, protocol.CodeFailed, dir)
	fork, err := w.Fork(ctx, first.Head, ForkOptions{})
	require.NoError(t, err)
	_, err = w.Step(ctx, fork, StepOptions{})
	requireCode(t, err, protocol.CodeFailed, dir)
	require.Len(t, w.runs(), ran)
}

// A thread of an older version may have a step with any directory.
func TestForgedDirectoryOfAStoredStep(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "$SUSPEND")
	dir := w.elsewhere()
	id := w.start()
	ctx := context.Background()
	step := w.readStep(w.mustStep(id, StepOptions{}).Head)
	step.Cwd = dir
	b := w.Reader.Batch()
	forged, err := b.Add(ctx, step)
	require.NoError(t, err)
	require.NoError(t, b.Commit(ctx))
	require.NoError(t, w.Reader.Heads.Move(ctx, id, w.head(id), forged))
	_, err = w.Resume(ctx, id, "go on", StepOptions{})
	requireCode(t, err, protocol.CodeFailed, dir)
}

// A thread started through a link stores the directory, not the link.
func TestThreadStartedThroughALink(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "again,beside,done")
	require.NoError(t, os.Mkdir(filepath.Join(w.dir, "sub"), 0o755))
	dir := w.elsewhere()
	link := filepath.Join(filepath.Dir(w.dir), "link")
	require.NoError(t, os.Symlink(w.dir, link))
	id := w.startIn("the task", link)
	start, err := cas.Read[protocol.Start](context.Background(), w.Reader.Store, w.head(id))
	require.NoError(t, err)
	require.Equal(t, w.dir, start.Cwd)
	w.mustStep(id, StepOptions{})
	require.NoError(t, os.Remove(link))
	require.NoError(t, os.Symlink(dir, link))
	require.Equal(t, w.dir, w.readStep(w.mustStep(id, StepOptions{}).Head).Cwd)

	// The directory itself is replaced with a link.
	require.NoError(t, os.Rename(w.dir, w.dir+"-moved"))
	require.NoError(t, os.Symlink(dir, w.dir))
	_, err = w.Step(context.Background(), id, StepOptions{})
	requireCode(t, err, protocol.CodeFailed, dir)
}

func TestCheckFirstLooksAtTheLocation(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "done")
	dir := w.elsewhere()
	wf, schema := testWorkflow(nil)
	wf.Graph["$START"].Edges["_"] = protocol.Edge{Role: "planner", Prompt: "Go.", Location: dir}
	start := protocol.Start{Workflow: w.put(wf, schema), Prompt: "p", Cwd: w.dir}
	requireCode(t, w.CheckFirst(context.Background(), start, StepOptions{}), protocol.CodeFailed, dir)
	w.config.AllowLocations = []string{"~", filepath.Dir(dir)}
	require.NoError(t, w.CheckFirst(context.Background(), start, StepOptions{}))
}

// A path chosen by a model cannot start a line of output.
func TestAPathWithALineBreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "outside,done")
	dir := filepath.Join(w.elsewhere(), "x\nhint: rm")
	require.NoError(t, os.Mkdir(dir, 0o755))
	id := w.startIn(dir, w.dir)
	w.mustStep(id, StepOptions{})
	_, err := w.Step(context.Background(), id, StepOptions{})
	e := requireCode(t, err, protocol.CodeFailed, `x\nhint: rm"`)
	require.NotContains(t, e.Message+hints.All("", e)[0], "\n")
}
