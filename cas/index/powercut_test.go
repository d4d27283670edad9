package index_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// world is a home and a store as the program has them.
type world struct {
	*index.Index
	store *fsstore.Store
}

func newWorld(ctx context.Context, root string, fsys durable.FS, flush string) (world, error) {
	home := filepath.Join(root, "home")
	store, err := fsstore.Open(ctx, filepath.Join(home, "cas"), fsstore.Options{FS: fsys, Home: home, Flush: flush})
	return world{index.Open(home, fsys), store}, err
}

// register does what "workflow put" does.
func (w world) register(ctx context.Context, name string) error {
	b := cas.NewBatch(w.store, time.Now)
	schema, err := b.AddSchema(ctx, map[string]any{"type": "object"})
	if err != nil {
		return err
	}
	h, err := b.Add(ctx, protocol.Workflow{
		Name: name, Graph: map[string]protocol.GraphNode{},
		Roles: map[string]protocol.Role{"r": {Capabilities: []string{}, Frontmatter: schema}},
	})
	if err != nil {
		return err
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	return w.Register(ctx, name, h)
}

// start does what "thread start" does.
func (w world) start(ctx context.Context, id, workflow string) error {
	h, err := w.Workflow(ctx, workflow)
	if err != nil {
		return err
	}
	b := cas.NewBatch(w.store, time.Now)
	head, err := b.Add(ctx, protocol.Start{Workflow: h, Prompt: id, Cwd: "/"})
	if err != nil {
		return err
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	return w.Add(ctx, id, head)
}

// step does what an agent and then "thread step" do: a node as it happens, all
// nodes in one commit, the head.
func (w world) step(ctx context.Context, id string) error {
	head, err := w.Head(ctx, id)
	if err != nil {
		return err
	}
	t, err := thread.Open(ctx, w.store, head)
	if err != nil {
		return err
	}
	b := cas.NewBatch(w.store, time.Now)
	output, err := b.Add(ctx, protocol.NewSuspend(fmt.Sprintf("%s, step %d", id, t.Len())))
	if err != nil {
		return err
	}
	if err := b.Put(ctx); err != nil {
		return err
	}
	detail, err := b.Add(ctx, protocol.Detail{Capture: protocol.CaptureFinal, Turns: []cas.Hash{}})
	if err != nil {
		return err
	}
	next, err := t.Append(ctx, b, thread.Next{Role: "r", Output: output, Detail: detail, ExtractedBy: protocol.ByValue})
	if err != nil {
		return err
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	return w.Move(ctx, id, head, next)
}

func (w world) end(ctx context.Context, id string) error {
	head, err := w.Head(ctx, id)
	if err != nil {
		return err
	}
	return w.Archive(ctx, index.Ended{Thread: id, Workflow: h3, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1})
}

func (w world) reopen(ctx context.Context, id string) error {
	e, err := w.Ended(ctx, id)
	if err != nil {
		return err
	}
	return w.Reopen(ctx, e, 2)
}

// names is everything that the three files name: "active a", "ended a" and
// "workflow w", with their hashes. That of a start or a step tells the whole
// chain behind it.
func (w world) names(ctx context.Context) (map[string]protocol.Hash, error) {
	found := map[string]protocol.Hash{}
	for h, err := range w.Heads(ctx) {
		if err != nil {
			return nil, err
		}
		found["active "+h.Thread] = h.Hash
	}
	for e, err := range w.History(ctx) {
		if err != nil {
			return nil, err
		}
		found["ended "+e.Thread] = e.Head
	}
	names, err := w.Workflows(ctx)
	for _, n := range names {
		found["workflow "+n.Name] = n.Hash
	}
	return found, err
}

// reachable lists all nodes behind those that are named, types included. It
// fails if one is missing or damaged, or if a thread's chain does not fit.
func (w world) reachable(ctx context.Context, names map[string]protocol.Hash) ([]protocol.Hash, error) {
	roots := slices.Sorted(maps.Values(names))
	var found []protocol.Hash
	for n, err := range cas.Walk(ctx, w.store, roots, cas.WalkOptions{FollowTypes: true}) {
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n.Hash, err)
		}
		found = append(found, n.Hash)
	}
	for name, h := range names {
		if strings.HasPrefix(name, "workflow ") {
			continue
		}
		t, err := thread.Open(ctx, w.store, h)
		if err != nil {
			return nil, err
		}
		for _, err := range t.Steps(ctx) {
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}

// TestPowerCut cuts the power at every operation on the disk, with every state
// that the disk may then be in. What was acknowledged is there; what was under
// way has happened or not; every hash that a file names stands for whole, good
// nodes; and the program goes on from there.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		flush string
		model durable.Model
	}{{"full", durable.Posix}, {"batch", durable.Ordered}} {
		t.Run(c.flush, func(t *testing.T) {
			t.Parallel()
			ctx, root := t.Context(), t.TempDir()
			disk := durable.NewRecorder(durable.OS(), root)
			w, err := newWorld(ctx, root, disk, c.flush)
			require.NoError(t, err)

			acknowledged := []moment{{}}
			for i, act := range life() {
				require.NoError(t, act(ctx, w))
				names, err := w.names(ctx)
				require.NoError(t, err)
				nodes, err := w.reachable(ctx, names)
				require.NoError(t, err)
				acknowledged = append(acknowledged, moment{i + 1, len(disk.Ops()), names, nodes})
			}

			ops, seen, left := disk.Ops(), map[string]bool{}, t.TempDir()
			for n, done := 0, 0; n <= len(ops); n++ {
				for done < len(life()) && acknowledged[done+1].ops <= n {
					done++
				}
				next := acknowledged[min(done+1, len(life()))]
				for outcome := range durable.Replay(ops, n, c.model) {
					key := fmt.Sprint(done, outcome.Key())
					if seen[key] {
						continue
					}
					seen[key] = true
					dir := filepath.Join(left, strconv.Itoa(len(seen)))
					require.NoError(t, outcome.Write(dir))
					if err := survives(ctx, dir, c.flush, acknowledged[done], next); err != nil {
						t.Fatalf("cut after %d of %d operations (%s): %v", n, len(ops), outcome.Name, err)
					}
					require.NoError(t, os.RemoveAll(dir))
				}
			}
			require.Greater(t, len(seen), len(ops))
		})
	}
}

// moment is when an act had been acknowledged.
type moment struct {
	acts  int // of life
	ops   int // on the disk, until then
	names map[string]protocol.Hash
	nodes []protocol.Hash // behind the names
}

// life is what happens before the power goes, each act acknowledged before the
// next begins.
func life() []func(context.Context, world) error {
	return []func(context.Context, world) error{
		func(ctx context.Context, w world) error { return w.register(ctx, "w") },
		func(ctx context.Context, w world) error { return w.start(ctx, "a", "w") },
		func(ctx context.Context, w world) error { return w.step(ctx, "a") },
		func(ctx context.Context, w world) error { return w.start(ctx, "b", "w") },
		func(ctx context.Context, w world) error { return w.end(ctx, "a") },
		func(ctx context.Context, w world) error { return w.end(ctx, "b") },
		func(ctx context.Context, w world) error { return w.reopen(ctx, "a") },
		func(ctx context.Context, w world) error { return w.step(ctx, "a") },
		func(ctx context.Context, w world) error { return w.end(ctx, "a") },
	}
}

// survives checks what a power cut has left, and does the cut act again, unless
// it had happened already.
func survives(ctx context.Context, root, flush string, before, after moment) error {
	w, err := newWorld(ctx, root, unflushed{durable.OS()}, flush)
	if err != nil {
		return err
	}
	names, err := w.names(ctx)
	if err != nil {
		return err
	}
	switch {
	case maps.Equal(names, after.names):
		return w.hold(ctx, after.nodes)
	case !maps.Equal(names, before.names):
		return fmt.Errorf("found %v, want %v or %v", names, before.names, after.names)
	}
	if err := w.hold(ctx, before.nodes); err != nil {
		return err
	}
	if err := life()[before.acts](ctx, w); err != nil {
		return fmt.Errorf("once more: %w", err)
	}
	if names, err = w.names(ctx); err != nil {
		return err
	}
	if !maps.Equal(names, after.names) {
		return fmt.Errorf("once more: found %v, want %v", names, after.names)
	}
	return w.hold(ctx, after.nodes)
}

// hold checks that nodes are there and are what their hashes say.
func (w world) hold(ctx context.Context, nodes []protocol.Hash) error {
	for _, h := range nodes {
		if _, err := w.store.Get(ctx, h); err != nil {
			return err
		}
	}
	return nil
}

// unflushed is a disk that flushes nothing, because a test looks at it at once.
type unflushed struct{ durable.FS }

func (u unflushed) WriteTemp(path string, data []byte, perm fs.FileMode, _ durable.Flush) (string, error) {
	return u.FS.WriteTemp(path, data, perm, durable.NoFlush)
}

func (u unflushed) Append(path string, data []byte, perm fs.FileMode, _ durable.Flush) error {
	return u.FS.Append(path, data, perm, durable.NoFlush)
}

func (unflushed) SyncFile(string) error  { return nil }
func (unflushed) StartSync(string) error { return nil }
func (unflushed) SyncDir(string) error   { return nil }
