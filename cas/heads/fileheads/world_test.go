package fileheads_test

import (
	"context"
	"fmt"
	"io/fs"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/fsstore"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// world is a home and a store as the program uses them.
type world struct {
	*fileheads.Heads
	store *fsstore.Store
}

func newWorld(ctx context.Context, root string, fsys durable.FS) (world, error) {
	home := filepath.Join(root, "home")
	store, err := fsstore.Open(ctx, filepath.Join(home, "cas"), fsstore.Options{FS: fsys, Home: home})
	return world{fileheads.Open(home, fsys), store}, err
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
	return w.Add(ctx, id, head, heads.Facts{})
}

// step does what an agent and then "thread step" do: put a node as it happens, commit all nodes, and move the
// head.
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
	next, err := t.Append(ctx, b, protocol.Step{Role: "r", Output: output, Detail: detail, ExtractedBy: protocol.ByValue})
	if err != nil {
		return err
	}
	if err := b.Commit(ctx); err != nil {
		return err
	}
	return w.Move(ctx, id, head, next)
}

// entitle sets a thread's title.
func (w world) entitle(ctx context.Context, id string) error {
	title := "mine"
	return w.SetFacts(ctx, id, heads.Facts{Title: &title})
}

func (w world) end(ctx context.Context, id string) error {
	head, err := w.Head(ctx, id)
	if err != nil {
		return err
	}
	return w.Archive(ctx, heads.Ended{Thread: id, Workflow: h3, Head: head, Status: protocol.StatusCompleted, CompletedAt: 1})
}

func (w world) reopen(ctx context.Context, id string) error {
	e, err := w.Ended(ctx, id)
	if err != nil {
		return err
	}
	return w.Reopen(ctx, e, 2)
}

// names returns everything in the three files: "active a", "ended a" and "workflow w", with their hashes. The
// hash of a start or a step identifies its whole chain.
func (w world) names(ctx context.Context) (map[string]protocol.Hash, error) {
	found := map[string]protocol.Hash{}
	for h, err := range w.Heads.Heads(ctx) {
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

// reachable returns all nodes reachable from the names, including types. It fails if one is missing or
// damaged, or if a thread's chain is inconsistent.
func (w world) reachable(ctx context.Context, names map[string]protocol.Hash) ([]protocol.Hash, error) {
	roots := slices.Sorted(maps.Values(names))
	var found []protocol.Hash
	for n, err := range graph.Walk(ctx, w.store, roots, graph.WalkOptions{FollowTypes: true}) {
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

// unflushed is a disk that flushes nothing, because a test reads it immediately.
type unflushed struct{ durable.FS }

func (u unflushed) WriteTemp(path string, data []byte, perm fs.FileMode, _ durable.Flush) (string, error) {
	return u.FS.WriteTemp(path, data, perm, durable.NoFlush)
}

func (u unflushed) Append(path string, data []byte, perm fs.FileMode, _ durable.Flush) error {
	return u.FS.Append(path, data, perm, durable.NoFlush)
}

func (unflushed) SyncFile(string) error { return nil }
func (unflushed) SyncDir(string) error  { return nil }
