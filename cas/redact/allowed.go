package redact

import (
	"context"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
)

// allowed checks whether the node can be redacted, and finds the threads that share it.
func (r *redaction) allowed(ctx context.Context) error {
	if why := r.neededKind(ctx); why != "" {
		return &NeededError{Hash: r.node.Hash, Reason: why}
	}
	look, err := r.survey(ctx)
	if err != nil {
		return err
	}
	for _, h := range look.unshared {
		// A missing or redacted node has no content.
		if n, err := r.store.Get(ctx, h); err == nil && r.kind(ctx, n) == protocol.KindTurn {
			r.half = append(r.half, n)
		}
	}
	mine := false
	for id, head := range r.heads {
		switch {
		case !look.above[head]:
		case id == r.done.Thread:
			mine = true
		default:
			r.done.Shared = append(r.done.Shared, id)
		}
	}
	slices.Sort(r.done.Shared)
	if len(look.above) == 0 {
		// No continuing thread needs it. A replaced step can still reference it.
		if mine, err = r.replaced(ctx, look.loose); err != nil {
			return err
		}
		look.outputOf = nil
	}
	if !mine {
		return fmt.Errorf("node %s %w %s", r.node.Hash, ErrNotPart, r.done.Thread)
	}
	for _, step := range look.outputOf {
		if err := r.neededOutput(ctx, step); err != nil {
			return err
		}
	}
	if len(r.done.Shared) > 0 && !r.options.Shared {
		return &SharedError{Hash: r.node.Hash, Threads: r.done.Shared}
	}
	return nil
}

// replaced reports whether one of the nodes is a step made by the thread that is no longer in its chain.
func (r *redaction) replaced(ctx context.Context, nodes []cas.Hash) (bool, error) {
	t, err := thread.Open(ctx, r.store, r.heads[r.done.Thread])
	if err != nil {
		return false, err
	}
	return slices.ContainsFunc(nodes, func(h cas.Hash) bool {
		s, err := cas.Read[protocol.Step](ctx, r.store, h)
		return err == nil && s.Start == t.StartHash
	}), ctx.Err()
}

// neededKind returns the reason why no node of a kind can be redacted; "" if some can.
func (r *redaction) neededKind(ctx context.Context) string {
	kinds := r.store.Kinds()
	if r.node.Type == kinds.MetaHash() || r.node.Type == r.node.Hash {
		return "it is a schema, which other nodes need"
	}
	switch r.done.Kind = r.kind(ctx, r.node); r.done.Kind {
	case protocol.KindStep, protocol.KindStart:
		return "it is part of the chain; redact its detail, a turn, its prompt or an older output instead"
	case protocol.KindWorkflow:
		return "it is a workflow, which threads need to continue"
	}
	return ""
}

// kind returns the kind of a node; "" if it isn't ours or its schema is unreadable.
func (r *redaction) kind(ctx context.Context, n cas.Node) protocol.Kind {
	kind, _, _ := r.store.Kinds().Of(ctx, r.store, n.Type)
	return kind
}

// neededOutput returns an error if routing needs the node as the output of a step.
func (r *redaction) neededOutput(ctx context.Context, step cas.Hash) error {
	for id, head := range r.heads {
		if head == step {
			return &NeededError{Hash: r.node.Hash, Reason: fmt.Sprintf("it is the newest output of thread %s, which "+
				"decides the next role", id)}
		}
	}
	t, err := thread.Open(ctx, r.store, step)
	if err != nil {
		return err
	}
	w, err := t.Workflow(ctx)
	if err != nil {
		return err
	}
	looksBack := true
	if r.options.LooksBack != nil {
		if looksBack, err = r.options.LooksBack(ctx, w); err != nil {
			return err
		}
	}
	if looksBack {
		return &NeededError{Hash: r.node.Hash, Reason: fmt.Sprintf("it is the output of step %s, and conditions of workflow "+
			"%s may read it", step, w.Name)}
	}
	return nil
}

// surveyed contains information about the node from the whole store.
type surveyed struct {
	above    map[cas.Hash]bool // heads that lead to it
	outputOf []cas.Hash        // steps with it as their output, sorted
	loose    []cas.Hash        // if there are no such heads: all nodes that lead to it
	unshared []cas.Hash        // half-written turns that no node references
}

// seen is the result of reading one node.
type seen struct {
	id       census.ID
	refs     []cas.Hash
	outputOf bool
}

// survey reads every node of the store. An unreadable node counts as having no refs; fsck reports it.
func (r *redaction) survey(ctx context.Context) (surveyed, error) {
	var out surveyed
	var faults error
	set, err := census.List(ctx, r.store, func(err error) { faults = err })
	if err != nil {
		return out, err
	}
	if faults != nil {
		return out, fmt.Errorf("list nodes: %w", faults)
	}
	g := census.NewGraph(set)
	look := func(inspector *graph.Inspector, id census.ID, n cas.Node, err error) seen {
		if err != nil {
			return seen{id: id}
		}
		refs, err := inspector.Refs(ctx, n)
		if err != nil || !slices.Contains(refs, r.node.Hash) {
			return seen{id: id, refs: refs}
		}
		t, err := thread.Open(ctx, r.store, n.Hash)
		return seen{id: id, refs: refs, outputOf: err == nil && t.Last != nil && t.Last.Output == r.node.Hash}
	}
	inspector := func() *graph.Inspector { return graph.NewInspector(r.store) }
	err = census.EachNode(ctx, r.store, inspector, set, look, func(nodes []seen) {
		for _, n := range nodes {
			g.Add(n.id, n.refs...)
			if n.outputOf {
				out.outputOf = append(out.outputOf, g.Hash(n.id))
			}
		}
	})
	if err != nil {
		return out, err
	}
	slices.Sort(out.outputOf)
	out.above = map[cas.Hash]bool{}
	isHead := map[census.ID]cas.Hash{}
	for _, head := range r.heads {
		isHead[g.Node(head)] = head
	}
	half := make([]census.ID, len(r.options.Half))
	for i, h := range r.options.Half {
		half[i] = g.Node(h)
	}
	walker := census.NewWalker(g.Up())
	for i, h := range r.options.Half {
		alone := h != r.node.Hash
		walker.Reach(half[i:i+1], func(id census.ID) bool {
			alone = alone && id == half[i]
			return alone
		})
		if alone {
			out.unshared = append(out.unshared, h)
		}
	}
	var above []census.ID
	walker.Reach([]census.ID{g.Node(r.node.Hash)}, func(id census.ID) bool {
		if head, ok := isHead[id]; ok {
			out.above[head] = true
		}
		above = append(above, id)
		return true
	})
	if len(out.above) == 0 {
		for _, id := range above {
			out.loose = append(out.loose, g.Hash(id))
		}
	}
	return out, nil
}

// LooksBack reports whether routing may read outputs before the last one, which only conditions can.
func LooksBack(_ context.Context, w protocol.Workflow) (bool, error) {
	for _, node := range w.Graph {
		for _, t := range node.Transitions {
			if t.Condition != "" {
				return true, nil
			}
		}
	}
	return false, nil
}
