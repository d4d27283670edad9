package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/graph"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/gitobject"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Report describes the content of a bundle.
type Report struct {
	Hash       cas.Algorithm     `json:"hash"`
	Threads    []CheckedThread   `json:"threads"`
	Workflows  []CheckedWorkflow `json:"workflows"`
	Roots      []CheckedRoot     `json:"roots"`
	Nodes      int               `json:"nodes"` // without tombstones
	Tombstones []FoundTombstone  `json:"tombstones"`
	Trees      int               `json:"trees,omitempty"`   // file trees
	Objects    int               `json:"objects,omitempty"` // files and directories in those
	// Links lists some links that point out of the work tree.
	Links []string `json:"links,omitempty"`
	Bytes int64    `json:"bytes"` // uncompressed

	visited []cas.Hash // for [Parts], each after what it needs
}

// CheckedThread is a thread with a complete chain. Seal is computed from its content, "" if unknown; Sealed
// means that the bundle contains it.
type CheckedThread struct {
	Thread       string          `json:"thread"`
	Head         cas.Hash        `json:"head"`
	Status       protocol.Status `json:"status"` // "active", or the final status
	WorkflowName string          `json:"workflowName"`
	Steps        int             `json:"steps"`
	Seal         string          `json:"seal"`
	Sealed       bool            `json:"sealed"`
}

// CheckedWorkflow is a bundle's name for a workflow. An import registers it only on request, and only if it
// is the workflow's own name.
type CheckedWorkflow struct {
	Name         string   `json:"name"`
	Hash         cas.Hash `json:"hash"`
	WorkflowName string   `json:"workflowName"` // the workflow's own name
}

// CheckedRoot is a node exported individually.
type CheckedRoot struct {
	Hash   cas.Hash `json:"hash"`
	Seal   string   `json:"seal"`
	Sealed bool     `json:"sealed"`
}

// FoundTombstone is a redacted node. Sealed means that a seal in the bundle covers it; otherwise anyone could
// have created it.
type FoundTombstone struct {
	Hash   cas.Hash `json:"hash"`
	Type   cas.Hash `json:"type"`
	Reason string   `json:"reason"`
	At     int64    `json:"redactedAt"` // ms
	Sealed bool     `json:"sealed"`
}

// active is the status of an unfinished thread in a report.
const active protocol.Status = "active"

// Check proves that a bundle is complete: every node referenced from its manifest exists exactly once and in
// its place, without any others; each matches its type; steps form chains; seals match. It returns a
// [*FaultError] or a read error.
func (f *File) Check(ctx context.Context) (Report, error) {
	c := &check{file: f, sealer: seal.New(f, seal.Options{}), steps: map[cas.Hash]place{},
		redacted: map[cas.Hash]bool{}, states: map[protocol.Tree]bool{}}
	report := Report{Hash: f.Manifest.Hash, Workflows: []CheckedWorkflow{}, Bytes: f.Size}
	err := graph.BottomUp(jsonschema.WithBudget(ctx, len(f.records)), f, f.Manifest.roots(),
		graph.BottomUpOptions{Verify: true, Known: f.below}, func(v graph.Visited) error { return c.visit(ctx, v) })
	if err != nil {
		return report, f.locate(err)
	}
	if report.visited = c.order; f.base == nil && c.visited < len(f.records) {
		extra := f.records[c.visited]
		return report, &FaultError{Offset: extra.frame(), Hash: extra.hash(),
			Err: fmt.Errorf("node %s is not needed by anything in the bundle", extra.hash())}
	}
	if err := compareSeals(c.sealer, f.Manifest.sealed()); err != nil {
		return report, f.locate(err)
	}
	report.Nodes = len(f.records) - len(c.tombstones)
	if err := c.trees(ctx, &report); err != nil {
		return report, err
	}
	return report, c.describe(ctx, &report)
}

// trees proves that the files are complete: steps reference each tree, and everything the trees reference
// exists in its place, without anything else.
func (c *check) trees(ctx context.Context, r *Report) error {
	f, next := c.file, 0
	if f.base != nil { // the requester of the files checks that steps reference them
		links, err := f.treesOnBase(ctx)
		if err != nil {
			return fault(0, "%w", err)
		}
		r.Trees, r.Objects, r.Links = len(f.Manifest.Trees), len(f.order), links
		return nil
	}
	for _, s := range f.Manifest.Instead {
		if !c.states[s.Tree] {
			return fault(0, "the manifest: no step refers to files %s", s.Tree)
		}
		c.states[s.By] = true
	}
	for _, tree := range f.Manifest.Trees {
		if !c.states[tree] {
			return fault(0, "the manifest: no step refers to files %s", tree)
		}
	}
	walk := gitobject.Walk{From: f, Visit: func(_ byte, id protocol.Tree, _ []byte) error {
		if at := f.objects[id]; int(at.place) != next {
			return &FaultError{Offset: at.offset, Err: fmt.Errorf("file %s is out of order", id)}
		}
		next++
		return ctx.Err()
	}}
	links, err := walk.Trees(f.Manifest.Trees...)
	var known *FaultError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil && !errors.As(err, &known):
		return fault(0, "%w", err)
	case err != nil:
		return err
	}
	if next < len(f.order) {
		extra := f.order[next]
		return &FaultError{Offset: f.objects[extra].offset, Err: fmt.Errorf("file %s is not needed by anything in "+
			"the bundle", extra)}
	}
	r.Trees, r.Objects, r.Links = len(f.Manifest.Trees), len(f.order), links
	return nil
}

// locate adds the byte offset to an error.
func (f *File) locate(err error) error {
	var (
		known  *FaultError
		visit  *graph.VisitError
		sealed *cas.SealError
	)
	switch {
	case errors.As(err, &known):
		return err
	case errors.As(err, &sealed):
		return &FaultError{Offset: f.offset(sealed.Hash), Hash: sealed.Hash, Err: err}
	case errors.As(err, &visit):
		at := visit.Hash
		if _, there := f.find(at); !there && visit.By != "" {
			at = visit.By
		}
		return &FaultError{Offset: f.offset(at), Hash: visit.Hash, Err: err}
	}
	return err
}

// check is the state of one [File.Check].
type check struct {
	file       *File
	sealer     *seal.Sealer
	visited    int
	order      []cas.Hash
	steps      map[cas.Hash]place
	tombstones []cas.Tombstone
	redacted   map[cas.Hash]bool
	states     map[protocol.Tree]bool // file trees referenced by steps
}

// place is the place of a step in its chain.
type place struct {
	start cas.Hash
	index int
}

// visit checks that a node is the next record, that it could be redacted, and that a step fits its predecessor. Nodes
// of the base were checked when they were stored.
func (c *check) visit(ctx context.Context, v graph.Visited) error {
	h := v.Node.Hash
	c.redacted[h] = v.Tombstone != nil
	if _, ok := c.file.find(h); !ok {
		return nil
	}
	if c.file.base != nil {
		c.order = append(c.order, h)
	} else if next := c.file.records[c.visited]; next.hash() != h {
		return &FaultError{Offset: next.frame(), Hash: next.hash(),
			Err: fmt.Errorf("node %s is out of order: want %s", next.hash(), h)}
	}
	c.visited++
	check := c.node
	if v.Tombstone != nil {
		check = c.tombstone
	}
	if err := check(ctx, v); err != nil {
		return c.at(h, err)
	}
	if c.file.base != nil {
		return nil // some of it is elsewhere
	}
	return c.sealer.Visit(v)
}

func (c *check) at(h cas.Hash, err error) error {
	return &FaultError{Offset: c.file.offset(h), Hash: h, Err: err}
}

func (c *check) tombstone(ctx context.Context, v graph.Visited) error {
	kind, _, _ := c.file.kinds.Of(ctx, c.file, v.Tombstone.Type) // a type that isn't in the bundle isn't ours
	switch {
	case v.Tombstone.Type == c.file.Kinds().MetaHash():
		return errors.New("it is the tombstone of a schema, which cannot be redacted")
	case kind == protocol.KindStep, kind == protocol.KindStart, kind == protocol.KindWorkflow:
		return fmt.Errorf("it is the tombstone of a %s, which cannot be redacted", kind)
	}
	c.tombstones = append(c.tombstones, *v.Tombstone)
	return nil
}

// node checks a step against its predecessor, and that no part of a workflow was redacted: a tombstone makes an
// unproven claim about its content, which here is a schema.
func (c *check) node(ctx context.Context, v graph.Visited) error {
	kind, version, err := c.file.kinds.Of(ctx, c.file, v.Node.Type)
	if err != nil {
		return err
	}
	switch kind {
	case protocol.KindStep:
		return c.step(ctx, v.Node, version == 0)
	case protocol.KindWorkflow:
		for _, need := range v.Needs {
			if c.redacted[need] {
				return fmt.Errorf("its schema %s was redacted, which is not possible", need)
			}
		}
	}
	return nil
}

// step checks that a step fits its predecessor, which was visited before. A step of the original doesn't contain its
// place.
func (c *check) step(ctx context.Context, n cas.Node, original bool) (err error) {
	var s protocol.Step
	if original {
		s, _, err = cas.OriginalStep(ctx, c.file, n)
	} else {
		s, err = cas.As[protocol.Step](ctx, c.file, n)
	}
	if err != nil {
		return err
	}
	if s.Files != nil {
		c.states[s.Files.Tree], c.states[s.Files.Before] = true, true
	}
	prev := place{start: s.Start, index: -1}
	if s.Prev == nil {
		_, err = cas.Read[protocol.Start](ctx, c.file, s.Start)
	} else {
		prev, err = c.placeOf(ctx, *s.Prev)
	}
	if original {
		s.Index = prev.index + 1
	}
	switch {
	case err != nil:
		return err
	case prev.start != s.Start:
		return fmt.Errorf("its previous step %s belongs to another start, %s", *s.Prev, prev.start)
	case s.Index != 0 && s.Prev == nil:
		return fmt.Errorf("its index is %d, but it has no previous step", s.Index)
	case prev.index != s.Index-1:
		return fmt.Errorf("its index is %d, but its previous step %s has index %d", s.Index, *s.Prev, prev.index)
	}
	c.steps[n.Hash] = place{start: s.Start, index: s.Index}
	return nil
}

// placeOf returns the place of a step of the file or the base.
func (c *check) placeOf(ctx context.Context, h cas.Hash) (place, error) {
	if at, ok := c.steps[h]; ok {
		return at, nil
	}
	t, err := thread.Open(ctx, c.file, h)
	if err == nil && (t.Last == nil || c.file.base == nil) {
		err = fmt.Errorf("its previous node %s is not a step", h)
	}
	if err != nil {
		return place{}, err
	}
	return place{start: t.StartHash, index: t.Last.Index}, nil
}

// describe completes the report of a bundle with valid nodes, and checks that the manifest references the
// right kinds.
func (c *check) describe(ctx context.Context, r *Report) (err error) {
	m := c.file.Manifest
	for _, t := range m.Threads {
		shown, err := c.thread(ctx, t)
		if err != nil {
			return c.at(t.Head, fmt.Errorf("thread %s: %w", t.Thread, err))
		}
		r.Threads = append(r.Threads, shown)
	}
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

func (c *check) thread(ctx context.Context, t Thread) (CheckedThread, error) {
	out := CheckedThread{Thread: t.Thread, Head: t.Head, Status: t.Status, Seal: c.sealer.Of(t.Head).String(),
		Sealed: t.Seal != ""}
	if !t.Ended() {
		out.Status = active
	} else if t.Failed {
		out.Status = protocol.StatusFailed
	}
	if t.Workflow != "" {
		if _, err := cas.Read[protocol.Workflow](ctx, c.file, t.Workflow); err != nil {
			return out, err
		}
	}
	chain, err := thread.Open(ctx, c.file, t.Head)
	if err != nil {
		return out, err
	}
	w, err := chain.Workflow(ctx)
	out.Steps, out.WorkflowName = chain.Len(), w.Name
	return out, err
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
