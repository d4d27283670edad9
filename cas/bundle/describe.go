package bundle

import (
	"context"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// describe completes the report of a bundle with valid nodes, and checks that the manifest references the
// right kinds.
func (c *check) describe(ctx context.Context, r *Report) error {
	m := c.file.Manifest
	for _, t := range m.Threads {
		shown, err := c.thread(ctx, t)
		if err != nil {
			return err
		}
		r.Threads = append(r.Threads, shown)
	}
	for _, w := range m.Workflows {
		if err := c.names("workflow "+w.Name, w.Hash, protocol.KindWorkflow, false); err != nil {
			return c.atHead(w.Hash, fmt.Errorf("the manifest: %w", err))
		}
	}
	var err error
	if r.Workflows, err = c.file.Names(ctx); err != nil {
		return err
	}
	for _, root := range m.Roots {
		r.Roots = append(r.Roots, CheckedRoot{Hash: root.Hash, Seal: c.sealer.Of(root.Hash).String(),
			Sealed: root.Seal != ""})
	}
	return c.listTombstones(ctx, r)
}

// Names returns the bundle's names for workflows, and the workflows' own names.
func (f *File) Names(ctx context.Context) ([]CheckedWorkflow, error) {
	names := make([]CheckedWorkflow, 0, len(f.Manifest.Workflows))
	for _, w := range f.Manifest.Workflows {
		node, err := cas.Read[protocol.Workflow](ctx, f, w.Hash)
		if err != nil {
			return names, &FaultError{Offset: f.offset(w.Hash), Hash: w.Hash, Err: fmt.Errorf("the manifest: workflow %s: %w",
				w.Name, err)}
		}
		names = append(names, CheckedWorkflow{Name: w.Name, Hash: w.Hash, WorkflowName: node.Name})
	}
	return names, nil
}

func (c *check) atHead(h cas.Hash, err error) error {
	return &FaultError{Offset: c.file.offset(h), Hash: h, Err: err}
}

func (c *check) thread(ctx context.Context, t Thread) (CheckedThread, error) {
	out := CheckedThread{Thread: t.Thread, Head: t.Head, Status: t.Status, Seal: c.sealer.Of(t.Head).String(),
		Sealed: t.Seal != ""}
	if !t.Ended() {
		out.Status = active
	} else if t.Failed {
		out.Status = protocol.StatusFailed
	}
	if t.Workflow != "" {
		if err := c.names("workflow", t.Workflow, protocol.KindWorkflow, false); err != nil {
			return out, c.atHead(t.Workflow, fmt.Errorf("thread %s: %w", t.Thread, err))
		}
	}
	chain, err := thread.Open(ctx, c.file, t.Head)
	if err != nil {
		return out, c.atHead(t.Head, fmt.Errorf("thread %s: %w", t.Thread, err))
	}
	w, err := chain.Workflow(ctx)
	if err != nil {
		return out, c.atHead(t.Head, fmt.Errorf("thread %s: %w", t.Thread, err))
	}
	out.Steps, out.WorkflowName = chain.Len(), w.Name
	if c.file.Algorithm() != cas.XXH64 {
		return out, nil
	}
	// The original's steps are recognized only through the chain.
	for _, err := range chain.Steps(ctx) {
		if err != nil {
			return out, c.atHead(t.Head, fmt.Errorf("thread %s: %w", t.Thread, err))
		}
	}
	return out, nil
}

// listTombstones also determines which tombstones a seal of the bundle covers.
func (c *check) listTombstones(ctx context.Context, r *Report) error {
	r.Tombstones = []FoundTombstone{}
	if len(c.tombstones) == 0 {
		return nil
	}
	var sealed []cas.Hash
	for _, root := range c.file.Manifest.sealed() {
		sealed = append(sealed, root.Hash)
	}
	covered := map[cas.Hash]bool{}
	err := graph.BottomUp(ctx, c.file, sealed, graph.BottomUpOptions{}, func(v graph.Visited) error {
		covered[v.Node.Hash] = v.Tombstone != nil
		return nil
	})
	if err != nil {
		return err
	}
	for _, t := range c.tombstones {
		r.Tombstones = append(r.Tombstones, FoundTombstone{Hash: t.Hash, Type: t.Type, Reason: t.Reason, At: t.At,
			Sealed: covered[t.Hash]})
	}
	return nil
}

// original records the place in the chain of a step of the original, so that one of our steps can follow it:
// such a node doesn't contain its place, but its predecessor has already been visited. It ignores other
// nodes.
func (c *check) original(ctx context.Context, n cas.Node) error {
	s, ok, err := cas.OriginalStep(ctx, c.file, n)
	if err != nil || !ok {
		return err
	}
	here := place{start: s.Start}
	if s.Prev != nil {
		prev, ok := c.steps[*s.Prev]
		switch {
		case !ok:
			return fmt.Errorf("its previous node %s is not a step", *s.Prev)
		case prev.start != s.Start:
			return fmt.Errorf("its previous step %s belongs to another start, %s", *s.Prev, prev.start)
		}
		here.index = prev.index + 1
	}
	c.steps[n.Hash] = here
	return nil
}
