package bundle_test

import (
	"bytes"
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/bundle"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Thread ids.
const (
	idA = "01ARZ3NDEKTSV4RRFFQ69G5FAA"
	idB = "01ARZ3NDEKTSV4RRFFQ69G5FAB"
	idC = "01ARZ3NDEKTSV4RRFFQ69G5FAC"
)

// world is a home with its store and index.
type world struct {
	t     testing.TB
	home  string
	store *fsstore.Store
	index *fileheads.Heads
}

func newWorld(t testing.TB, a cas.Algorithm) *world {
	t.Helper()
	return openWorld(t, t.TempDir(), a, durable.OS())
}

func openWorld(t testing.TB, home string, a cas.Algorithm, disk durable.FS) *world {
	t.Helper()
	s, err := fsstore.Open(context.Background(), filepath.Join(home, "cas"), fsstore.Options{Home: home, Hash: a, FS: disk})
	require.NoError(t, err)
	return &world{t: t, home: home, store: s, index: fileheads.Open(home, disk)}
}

func clock() time.Time { return time.UnixMilli(1_780_000_000_000) }

func (w *world) batch() *cas.Batch { return cas.NewBatch(w.store, clock) }

// workflow stores the workflow used by all threads here, under a name.
func (w *world) workflow(name string) (hash, schema cas.Hash) {
	w.t.Helper()
	ctx := context.Background()
	b := w.batch()
	schema, err := b.AddSchema(ctx, map[string]any{"type": []any{"object", "array"}, "properties": map[string]any{"n": map[string]any{"type": "integer"}}})
	require.NoError(w.t, err)
	hash, err = b.Add(ctx, protocol.Workflow{
		Name: name, Description: "d",
		Roles: map[string]protocol.Role{"r": {Description: "d", Goal: "g", Procedure: "p", Output: "o", Capabilities: []string{}, Frontmatter: schema}},
		Graph: map[string]protocol.GraphNode{},
	})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	require.NoError(w.t, w.index.Register(ctx, name, hash))
	return hash, schema
}

// start starts a thread.
func (w *world) start(id string) cas.Hash {
	w.t.Helper()
	ctx := context.Background()
	workflow, _ := w.workflow("w")
	b := w.batch()
	start, err := b.Add(ctx, protocol.Start{Workflow: workflow, Prompt: "prompt of " + id, Cwd: "/"})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	require.NoError(w.t, w.index.Add(ctx, id, start, heads.Facts{}))
	return start
}

// step makes a step with an output and moves the head.
func (w *world) step(id string, output any) cas.Hash {
	w.t.Helper()
	ctx := context.Background()
	head, err := w.index.Head(ctx, id)
	require.NoError(w.t, err)
	next := w.append(head, output)
	require.NoError(w.t, w.index.Move(ctx, id, head, next))
	return next
}

// append makes a step after a head.
func (w *world) append(head cas.Hash, output any) cas.Hash {
	w.t.Helper()
	ctx := context.Background()
	_, schema := w.workflow("w")
	chain, err := thread.Open(ctx, w.store, head)
	require.NoError(w.t, err)
	b := w.batch()
	out, err := b.AddValue(ctx, schema, output)
	require.NoError(w.t, err)
	var turns []cas.Hash
	for i := range 2 {
		turn, err := b.Add(ctx, protocol.Turn{Index: i, Role: protocol.TurnAssistant, Content: fmt.Sprintf("turn %d after %s", i, head)})
		require.NoError(w.t, err)
		turns = append(turns, turn)
	}
	detail, err := b.Add(ctx, protocol.Detail{SessionID: "s", Capture: protocol.CaptureTurns, Turns: turns})
	require.NoError(w.t, err)
	prompt, err := b.Add(ctx, protocol.Text("what to do"))
	require.NoError(w.t, err)
	next, err := chain.Append(ctx, b, protocol.Step{
		Role: "r", Agent: "uwf-test", EdgePrompt: "go", Cwd: "/", SessionID: "s", Output: out, Detail: detail, Prompt: &prompt, ExtractedBy: protocol.ByValue,
	})
	require.NoError(w.t, err)
	require.NoError(w.t, b.Commit(ctx))
	return next
}

// end archives a thread.
func (w *world) end(id string) {
	w.t.Helper()
	ctx := context.Background()
	head, err := w.index.Head(ctx, id)
	require.NoError(w.t, err)
	workflow, _ := w.workflow("w")
	require.NoError(w.t, w.index.Archive(ctx, heads.Ended{Thread: id, Workflow: workflow, Head: head, Status: protocol.StatusCompleted, CompletedAt: 7}))
}

// head returns a thread's head, active or ended.
func (w *world) head(id string) cas.Hash {
	w.t.Helper()
	all, err := heads.ThreadStates(context.Background(), w.index)
	require.NoError(w.t, err)
	return all[id].Head
}

// export exports threads as a bundle.
func (w *world) export(ids ...string) []byte {
	w.t.Helper()
	m, err := bundle.Collect(context.Background(), w.store, w.index, ids)
	require.NoError(w.t, err)
	var out bytes.Buffer
	_, err = bundle.Write(context.Background(), &out, w.store, m, nil)
	require.NoError(w.t, err)
	return out.Bytes()
}

// imports imports a bundle.
func (w *world) imports(data []byte, o bundle.ImportOptions) (bundle.Imported, error) {
	ctx := context.Background()
	f, err := bundle.Receive(ctx, bytes.NewReader(data), &bytesSpool{})
	if err != nil {
		return bundle.Imported{}, err
	}
	o.Now = clock
	return f.Import(ctx, bundle.Target{Store: w.store, Index: w.index}, o)
}

// verify reads a bundle as `uwf verify` does.
func verify(data []byte) (bundle.Report, error) {
	f, err := bundle.Receive(context.Background(), bytes.NewReader(data), &bytesSpool{})
	if err != nil {
		return bundle.Report{}, err
	}
	return f.Check(context.Background())
}

// sample returns a home with an active thread, an ended one, and a fork that shares most nodes with the
// first.
func sample(t testing.TB) *world {
	w := newWorld(t, cas.XXH3)
	w.start(idA)
	for i := range 4 {
		w.step(idA, map[string]any{"n": i})
	}
	w.start(idB)
	w.step(idB, map[string]any{"n": 1})
	w.end(idB)
	require.NoError(t, w.index.Add(context.Background(), idC, w.head(idA), heads.Facts{}))
	w.step(idC, map[string]any{"n": 9})
	return w
}

// snapshot returns every file below a directory with its content, except locks.
func snapshot(t testing.TB, dir string) map[string]string {
	t.Helper()
	files := map[string]string{}
	require.NoError(t, filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || filepath.Ext(path) == ".lock" {
			return err
		}
		data, err := os.ReadFile(path)
		files[path] = string(data)
		return err
	}))
	return files
}
