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
	c := &check{file: f, sealer: seal.New(f, seal.Options{}), is: make([]protocol.Kind, len(f.records)),
		below: map[cas.Hash]protocol.Kind{}, steps: map[cas.Hash]place{}, states: map[protocol.Tree]bool{}}
	report := Report{Hash: f.Manifest.Hash, Workflows: []CheckedWorkflow{}, Bytes: f.Size}
	if err := c.noteBase(ctx); err != nil {
		return report, err
	}
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
	is         []protocol.Kind            // kind of each record; "" for other types
	below      map[cas.Hash]protocol.Kind // kinds of nodes in the base
	visited    int
	order      []cas.Hash
	steps      map[cas.Hash]place
	tombstones []cas.Tombstone
	states     map[protocol.Tree]bool // file trees referenced by steps
}

// place is the place of a step in its chain.
type place struct {
	start cas.Hash
	index int
}

// redacted is the kind of a tombstone.
const redacted protocol.Kind = "redacted node"

// visit checks that a node is the next record, its kind against its references, and a step against its
// predecessor.
func (c *check) visit(ctx context.Context, v graph.Visited) error {
	h := v.Node.Hash
	wrong := func(format string, args ...any) error {
		return &FaultError{Offset: c.file.offset(h), Hash: h, Err: fmt.Errorf(format, args...)}
	}
	if _, ok := c.file.find(h); !ok {
		return c.visitBelow(ctx, v)
	}
	if c.file.base != nil {
		c.order = append(c.order, h)
	} else if next := c.file.records[c.visited]; next.hash() != h {
		return &FaultError{Offset: next.frame(), Hash: next.hash(),
			Err: fmt.Errorf("node %s is out of order: want %s", next.hash(), h)}
	}
	c.visited++
	if v.Tombstone != nil {
		kind, _, _ := c.file.kinds.Of(ctx, c.file, v.Tombstone.Type) // a type that isn't in the bundle isn't ours
		switch {
		case v.Tombstone.Type == c.file.Kinds().MetaHash():
			return wrong("it is the tombstone of a schema, which cannot be redacted")
		case kind == protocol.KindStep, kind == protocol.KindStart, kind == protocol.KindWorkflow:
			return wrong("it is the tombstone of a %s, which cannot be redacted", kind)
		}
		c.tombstones = append(c.tombstones, *v.Tombstone)
		c.set(h, redacted)
		return c.seal(v)
	}
	kind, version, err := c.file.kinds.Of(ctx, c.file, v.Node.Type)
	if err != nil {
		return wrong("%w", err)
	}
	if version == 0 {
		kind = "" // the original's is handled differently
	}
	c.set(h, kind)
	switch kind {
	case protocol.KindStep:
		err = c.step(ctx, v.Node)
	case protocol.KindStart:
		err = c.start(ctx, v.Node)
	case protocol.KindDetail:
		err = c.detail(ctx, v.Node)
	case protocol.KindWorkflow:
		err = c.workflow(v)
	case "":
		err = c.original(ctx, v.Node)
	}
	if err != nil {
		return wrong("%w", err)
	}
	return c.seal(v)
}

// seal seals a node of the file unless some of it is elsewhere.
func (c *check) seal(v graph.Visited) error {
	if c.file.base != nil {
		return nil
	}
	return c.sealer.Visit(v)
}

// kind returns the kind of a visited node.
func (c *check) kind(h cas.Hash) protocol.Kind {
	if _, ok := c.file.find(h); !ok {
		return c.below[h]
	}
	return c.is[c.file.at[h.Number()]]
}

func (c *check) set(h cas.Hash, kind protocol.Kind) { c.is[c.file.at[h.Number()]] = kind }

// names checks that a ref leads to a node of a kind; gone means that it can be redacted.
func (c *check) names(what string, h cas.Hash, want protocol.Kind, gone bool) error {
	got := c.kind(h)
	if got == want || gone && got == redacted {
		return nil
	}
	if got == "" && c.file.Algorithm() == cas.XXH64 {
		return nil // a step of the original, which package thread handles
	}
	if got == "" {
		got = "node of another kind"
	}
	return fmt.Errorf("its %s %s is a %s, not a %s", what, h, got, want)
}

func (c *check) step(ctx context.Context, n cas.Node) error {
	s, err := cas.As[protocol.Step](ctx, c.file, n)
	if err != nil {
		return err
	}
	err = errors.Join(
		c.names("start", s.Start, protocol.KindStart, false),
		c.names("detail", s.Detail, protocol.KindDetail, true),
	)
	if s.Prompt != nil {
		err = errors.Join(err, c.names("prompt", *s.Prompt, protocol.KindText, true))
	}
	if s.Prev != nil {
		err = errors.Join(err, c.names("previous step", *s.Prev, protocol.KindStep, false))
	}
	if err != nil {
		return err
	}
	if s.Files != nil {
		c.states[s.Files.Tree], c.states[s.Files.Before] = true, true
	}
	c.steps[n.Hash] = place{start: s.Start, index: s.Index}
	return c.follows(s)
}

// follows checks that a step fits its predecessor.
func (c *check) follows(s protocol.Step) error {
	if s.Prev == nil {
		if s.Index != 0 {
			return fmt.Errorf("its index is %d, but it has no previous step", s.Index)
		}
		return nil
	}
	switch prev := c.steps[*s.Prev]; {
	case prev.start != s.Start:
		return fmt.Errorf("its previous step %s belongs to another start, %s", *s.Prev, prev.start)
	case prev.index != s.Index-1:
		return fmt.Errorf("its index is %d, but its previous step %s has index %d", s.Index, *s.Prev, prev.index)
	}
	return nil
}

func (c *check) start(ctx context.Context, n cas.Node) error {
	s, err := cas.As[protocol.Start](ctx, c.file, n)
	if err != nil {
		return err
	}
	return c.names("workflow", s.Workflow, protocol.KindWorkflow, false)
}

// workflow checks that no part of a workflow was redacted: a tombstone makes an unproven claim about its
// content, which here is a schema.
func (c *check) workflow(v graph.Visited) error {
	for _, need := range v.Needs {
		if c.kind(need) == redacted {
			return fmt.Errorf("its schema %s was redacted, which is not possible", need)
		}
	}
	return nil
}

func (c *check) detail(ctx context.Context, n cas.Node) error {
	d, err := cas.As[protocol.Detail](ctx, c.file, n)
	if err != nil {
		return err
	}
	for _, turn := range d.Turns {
		if err := c.names("turn", turn, protocol.KindTurn, true); err != nil {
			return err
		}
	}
	return nil
}

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
