package bundle

import (
	"context"
	"errors"
	"fmt"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/seal"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// Report says what is in a bundle.
type Report struct {
	Hash       cas.Algorithm     `json:"hash"`
	Threads    []CheckedThread   `json:"threads"`
	Workflows  []CheckedWorkflow `json:"workflows"`
	Roots      []CheckedRoot     `json:"roots"`
	Nodes      int               `json:"nodes"` // without tombstones
	Tombstones []FoundTombstone  `json:"tombstones"`
	Trees      int               `json:"trees,omitempty"`   // states of the files
	Objects    int               `json:"objects,omitempty"` // files and directories of those
	// Links are some that lead out of the work tree.
	Links []string `json:"links,omitempty"`
	Bytes int64    `json:"bytes"` // without compression

	visited []cas.Hash // of [Parts], each after what it needs
}

// CheckedThread is a thread whose chain is whole. Seal is what its content
// gives, "" if that cannot be told; Sealed: the bundle carries it.
type CheckedThread struct {
	Thread       string          `json:"thread"`
	Head         cas.Hash        `json:"head"`
	Status       protocol.Status `json:"status"` // "active", or how it ended
	WorkflowName string          `json:"workflowName"`
	Steps        int             `json:"steps"`
	Seal         string          `json:"seal"`
	Sealed       bool            `json:"sealed"`
}

// CheckedWorkflow is a name that the bundle gives to a workflow. An import takes it
// only if it is the workflow's own, and if it is asked to.
type CheckedWorkflow struct {
	Name         string   `json:"name"`
	Hash         cas.Hash `json:"hash"`
	WorkflowName string   `json:"workflowName"` // what the workflow calls itself
}

// CheckedRoot is a node that was exported for its own sake.
type CheckedRoot struct {
	Hash   cas.Hash `json:"hash"`
	Seal   string   `json:"seal"`
	Sealed bool     `json:"sealed"`
}

// FoundTombstone is a node that was redacted. Sealed: a seal that the bundle
// carries covers it; else anyone could have made it.
type FoundTombstone struct {
	Hash   cas.Hash `json:"hash"`
	Type   cas.Hash `json:"type"`
	Reason string   `json:"reason"`
	At     int64    `json:"redactedAt"` // ms
	Sealed bool     `json:"sealed"`
}

// active is how a report calls a thread that has not ended.
const active protocol.Status = "active"

// Check proves that a bundle is whole: every node that its manifest leads to is
// there, once and in its place, and nothing else; each satisfies its type; steps
// form chains; seals fit. Errors: a [*FaultError]; those of reading.
func (f *File) Check(ctx context.Context) (Report, error) {
	c := &check{file: f, sealer: seal.New(f, seal.Options{}), is: make([]protocol.Kind, len(f.records)), below: map[cas.Hash]protocol.Kind{}, steps: map[cas.Hash]place{}, states: map[protocol.Tree]bool{}}
	report := Report{Hash: f.Manifest.Hash, Workflows: []CheckedWorkflow{}, Bytes: f.Size}
	if err := c.standsOn(ctx); err != nil {
		return report, err
	}
	err := cas.BottomUp(jsonschema.WithBudget(ctx, len(f.records)), f, f.Manifest.roots(), cas.BottomUpOptions{Verify: true, Known: f.below}, func(v cas.Visited) error { return c.visit(ctx, v) })
	if err != nil {
		return report, f.locate(err)
	}
	if report.visited = c.order; f.base == nil && c.visited < len(f.records) {
		extra := f.records[c.visited]
		return report, &FaultError{Offset: extra.frame(), Hash: extra.hash(), Err: fmt.Errorf("nothing in the bundle needs node %s", extra.hash())}
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

// trees proves that the files are whole: that steps name each tree, and that all they
// lead to is there, in its place, and nothing else.
func (c *check) trees(ctx context.Context, r *Report) error {
	f, next := c.file, 0
	if f.base != nil { // whose steps name them is seen by whoever has asked for them
		links, err := f.treesOnBase(ctx)
		if err != nil {
			return fault(0, "%w", err)
		}
		r.Trees, r.Objects, r.Links = len(f.Manifest.Trees), len(f.order), links
		return nil
	}
	for _, s := range f.Manifest.Instead {
		if !c.states[s.Tree] {
			return fault(0, "the manifest: no step names the files %s", s.Tree)
		}
		c.states[s.By] = true
	}
	for _, tree := range f.Manifest.Trees {
		if !c.states[tree] {
			return fault(0, "the manifest: no step names the files %s", tree)
		}
	}
	walk := treeWalk{from: f, visit: func(_ byte, id protocol.Tree, _ []byte) error {
		if at := f.objects[id]; int(at.place) != next {
			return &FaultError{Offset: at.offset, Err: fmt.Errorf("file %s is not in its place", id)}
		}
		next++
		return ctx.Err()
	}}
	links, err := walk.walk(f.Manifest.Trees)
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
		return &FaultError{Offset: f.objects[extra].offset, Err: fmt.Errorf("nothing in the bundle needs file %s", extra)}
	}
	r.Trees, r.Objects, r.Links = len(f.Manifest.Trees), len(f.order), links
	return nil
}

// locate says at which byte an error is.
func (f *File) locate(err error) error {
	var (
		known  *FaultError
		visit  *cas.VisitError
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

// check is one run of [File.Check].
type check struct {
	file       *File
	sealer     *seal.Sealer
	is         []protocol.Kind            // of each record; "" for what is none of ours
	below      map[cas.Hash]protocol.Kind // of what is in the base
	visited    int
	order      []cas.Hash
	steps      map[cas.Hash]place
	tombstones []cas.Tombstone
	states     map[protocol.Tree]bool // of files, that steps name
}

// place is where a step stands in its chain.
type place struct {
	start cas.Hash
	index int
}

// redacted stands for the kind of a tombstone.
const redacted protocol.Kind = "redacted node"

// visit checks a node against the next record, its kind against what names it,
// and a step against the one before it.
func (c *check) visit(ctx context.Context, v cas.Visited) error {
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
		return &FaultError{Offset: next.frame(), Hash: next.hash(), Err: fmt.Errorf("node %s is not in its place: here belongs %s", next.hash(), h)}
	}
	c.visited++
	if v.Tombstone != nil {
		kind, _, _ := c.file.kinds.Of(ctx, c.file, v.Tombstone.Type) // a type that is not in the bundle is none of ours
		switch {
		case v.Tombstone.Type == c.file.Kinds().MetaHash():
			return wrong("it is the tombstone of a schema, which nobody can redact")
		case kind == protocol.KindStep, kind == protocol.KindStart, kind == protocol.KindWorkflow:
			return wrong("it is the tombstone of a %s, which nobody can redact", kind)
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
		kind = "" // the original's is looked at otherwise
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

// seal seals what is in the file, unless some of it is elsewhere.
func (c *check) seal(v cas.Visited) error {
	if c.file.base != nil {
		return nil
	}
	return c.sealer.Visit(v)
}

// kind is what a node is that was visited.
func (c *check) kind(h cas.Hash) protocol.Kind {
	if _, ok := c.file.find(h); !ok {
		return c.below[h]
	}
	return c.is[c.file.at[h.Number()]]
}

func (c *check) set(h cas.Hash, kind protocol.Kind) { c.is[c.file.at[h.Number()]] = kind }

// names checks that a ref leads to a node of a kind; gone: it may be redacted.
func (c *check) names(what string, h cas.Hash, want protocol.Kind, gone bool) error {
	got := c.kind(h)
	if got == want || gone && got == redacted {
		return nil
	}
	if got == "" && c.file.Algorithm() == cas.XXH64 {
		return nil // one of the original's, which package thread understands
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

// follows checks that a step fits the one before it.
func (c *check) follows(s protocol.Step) error {
	if s.Prev == nil {
		if s.Index != 0 {
			return fmt.Errorf("its index is %d, but only the first step, 0, has no previous one", s.Index)
		}
		return nil
	}
	switch prev := c.steps[*s.Prev]; {
	case prev.start != s.Start:
		return fmt.Errorf("its previous step %s belongs to another start, %s", *s.Prev, prev.start)
	case prev.index != s.Index-1:
		return fmt.Errorf("its index is %d, but that of its previous step %s is %d", s.Index, *s.Prev, prev.index)
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

// workflow checks that nothing of a workflow was redacted: a tombstone says of itself
// what it stood for, and here is a schema.
func (c *check) workflow(v cas.Visited) error {
	for _, need := range v.Needs {
		if c.kind(need) == redacted {
			return fmt.Errorf("its schema %s was redacted, which nobody can do", need)
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
