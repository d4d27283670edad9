package fsck

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads/fileheads"
	"github.com/united-workforce/uwf/cas/internal/census"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/runfiles"
)

// root is a name in the index and its node.
type root struct {
	node     census.ID
	name     string
	workflow bool // a name in the registry; otherwise a thread
}

// checkIndex checks every entry of the files.
func (c *check) checkIndex(ctx context.Context) error {
	if c.index == nil {
		return nil
	}
	threads, history := c.threads, c.history
	for h, err := range c.index.Heads(ctx) {
		if err != nil {
			c.unreadableLine(threads, err)
			continue
		}
		c.report.Threads++
		c.leads(ctx, threads, root{name: h.Thread}, h.Hash, protocol.KindStep, protocol.KindStart)
	}
	for e, err := range c.index.History(ctx) {
		if err != nil {
			c.unreadableLine(history, err)
			continue
		}
		c.report.Threads++
		c.leads(ctx, history, root{name: e.Thread}, e.Head, protocol.KindStep, protocol.KindStart)
		if e.Workflow.Valid() {
			c.leads(ctx, history, root{name: e.Thread}, e.Workflow, protocol.KindWorkflow)
		}
	}
	if _, err := c.index.AllFacts(ctx); err != nil {
		for _, line := range lines(err) {
			c.unreadableLine(c.facts, line)
		}
	}
	if err := c.checkLost(ctx); err != nil {
		return err
	}
	return c.checkRegistry(ctx)
}

// lines splits joined errors, one per line.
func lines(err error) []error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		return joined.Unwrap()
	}
	return []error{err}
}

func (c *check) checkRegistry(ctx context.Context) error {
	registry := c.registry
	names, err := c.index.Workflows(ctx)
	if err != nil {
		for _, line := range lines(err) {
			c.unreadableLine(registry, line)
		}
	}
	c.report.Workflows = len(names)
	for _, n := range names {
		if n.Problem != "" {
			where := registry
			if c.files != nil {
				where = c.files.WorkflowPlace(ctx, n.Name)
			}
			c.unreadableLine(registry, fmt.Errorf("%s: the name %q %s; remove the line and register the workflow "+
				"under another name", where, n.Name, n.Problem))
		}
		c.leads(ctx, registry, root{name: n.Name, workflow: true}, n.Hash, protocol.KindWorkflow)
	}
	return ctx.Err()
}

func (c *check) unreadableLine(path string, err error) {
	c.fault(Fault{Kind: Index, Path: path, Message: err.Error()})
}

// leads adds a root and checks that it references a node of the right kind. A missing or damaged node is reported with
// the node.
func (c *check) leads(ctx context.Context, path string, r root, h cas.Hash, kinds ...protocol.Kind) {
	r.node = c.graph.Node(h)
	c.roots = append(c.roots, r)
	problem := "was redacted"
	n, err := c.store.Get(ctx, h)
	if _, redacted := cas.AsRedacted(err); !redacted {
		if err != nil || c.is(n.Type, kinds...) {
			return
		}
		problem = fmt.Sprintf("is not a %s", kinds[0])
	}
	what := "thread"
	if r.workflow {
		what = "workflow"
	}
	c.fault(Fault{Kind: Index, Hash: h, Path: path,
		Message: fmt.Sprintf("%s %s refers to node %s, which %s", what, r.name, h, problem)})
}

// dependents determines the threads and workflows affected by each fault, and the threads of each tombstone.
func (c *check) dependents() {
	if len(c.report.Faults)+len(c.report.Tombstones) == 0 || len(c.roots) == 0 {
		return
	}
	above := c.rootsAbove()
	for i := range c.report.Faults {
		f := &c.report.Faults[i]
		if f.Hash == "" {
			continue
		}
		for _, r := range above(f.Hash) {
			f.add(r)
		}
	}
	c.locate()
	c.excuse()
	c.restore()
	for i := range c.report.Tombstones {
		t := &c.report.Tombstones[i]
		for _, r := range above(t.Hash) {
			if !r.workflow && len(t.Threads) < maxDependents {
				t.Threads = append(t.Threads, r.name)
			}
		}
	}
}

// locate finds the index lines that reference a bad node, where it can be fixed.
func (c *check) locate() {
	if c.files == nil {
		return
	}
	direct := map[cas.Hash][]root{}
	for _, r := range c.roots {
		h := c.graph.Name(r.node)
		direct[h] = append(direct[h], r)
	}
	for i := range c.report.Faults {
		f := &c.report.Faults[i]
		named := direct[f.Hash]
		for _, r := range named[:min(len(named), maxDependents)] {
			where := c.files.ThreadPlace
			if r.workflow {
				where = c.files.WorkflowPlace
			}
			if line := where(context.Background(), r.name); line != "" {
				f.Message += ", referred to in " + line
			}
		}
	}
}

// excuse downgrades nodes that are missing, cut off or don't fit their chain if no thread or workflow
// references them and there are no other faults. They are garbage: left by a put or commit interrupted by a
// power cut, by a collection, or by an agent whose step was rejected. With other faults, or without an index,
// it is unknown what is garbage.
func (c *check) excuse() {
	light := func(f Fault) bool {
		return !f.Remains || (f.Kind == Missing || f.Kind == Chain || f.cut) && f.Dependents == 0 &&
			!c.store.Kinds().InFoundation(f.Hash)
	}
	if slices.ContainsFunc(c.report.Faults, func(f Fault) bool { return !light(f) }) {
		return
	}
	for i := range c.report.Faults {
		f := &c.report.Faults[i]
		switch {
		case !f.Remains:
			continue
		case f.Kind == Missing:
			f.Message += ", by nodes that nothing needs; gc removes them"
		default:
			f.Message += "; nothing needs it, so gc removes it"
		}
		f.Remains = false
	}
}

// restore adds the commands that bring back lost nodes: built-in schemas are recreated; a thread that was pushed
// can be pulled; otherwise a bundle can contain it.
func (c *check) restore() {
	repair := strings.TrimSpace(c.program + " fsck --repair")
	for i := range c.report.Faults {
		f := &c.report.Faults[i]
		if !f.Remains || f.Kind != Missing && f.Kind != Damaged {
			continue
		}
		var steps []string
		_, builtin := c.store.Kinds().Builtin(f.Hash)
		if builtin || f.Kind == Damaged {
			steps = append(steps, repair)
		}
		if !builtin && len(f.Threads) > 0 {
			from := "uwf thread import FILE, with a bundle of the thread"
			if facts, err := c.index.Facts(context.Background(), f.Threads[0]); err == nil && facts.Remote != nil {
				from = "uwf pull " + f.Threads[0] + " " + facts.Remote.Name
			}
			steps = append(steps, from)
		}
		f.Restore = strings.Join(steps, ", then ")
	}
}

// rootsAbove returns a function that lists the names whose nodes reference a node, directly or not.
func (c *check) rootsAbove() func(cas.Hash) []root {
	named := map[census.ID][]root{}
	for _, r := range c.roots {
		named[r.node] = append(named[r.node], r)
	}
	for _, f := range c.report.Faults {
		if f.Hash != "" {
			c.graph.Node(f.Hash) // such as the hash in a seal without a node: it needs a number before the links are made
		}
	}
	for _, t := range c.report.Tombstones {
		c.graph.Node(t.Hash)
	}
	up := c.graph.Up()
	budget := maxVisits
	return func(h cas.Hash) (found []root) {
		if budget <= 0 {
			return nil
		}
		have := map[root]bool{}
		up.Reach([]census.ID{c.graph.Node(h)}, func(id census.ID) bool {
			for _, r := range named[id] {
				r.node = 0
				if !have[r] {
					have[r] = true
					found = append(found, r)
				}
			}
			budget--
			return budget > 0
		})
		return found
	}
}

// maxVisits bounds the search for dependents if there are very many faults; the dependents of the last ones
// are then omitted.
const maxVisits = 200_000_000

func (f *Fault) add(r root) {
	f.Dependents++
	switch {
	case r.workflow && len(f.Workflows) < maxDependents:
		f.Workflows = append(f.Workflows, r.name)
	case !r.workflow && len(f.Threads) < maxDependents:
		f.Threads = append(f.Threads, r.name)
	}
}

// checkLost reports threads that exist but aren't in any index file.
func (c *check) checkLost(ctx context.Context) error {
	if c.files == nil {
		return nil
	}
	lost, err := c.files.Lost(ctx)
	if err != nil {
		c.unreadableLine(c.threads, err)
	}
	for _, id := range lost {
		run := runfiles.Dir(filepath.Join(c.home, "runs", id))
		what, path := "has run", run.File(runfiles.RecordFile)
		if _, err := os.Lstat(path); err != nil {
			what, path = "is known", c.facts
		}
		message := fmt.Sprintf("thread %s %s, but threads.yaml and history.jsonl lack it: its line was lost or "+
			"damaged", id, what)
		if head := headOfRun(run.Record()); head != "" {
			message += fmt.Sprintf("; its head was %s; to continue from there: uwf thread fork %s; otherwise "+
				"remove its directory", head, head)
		}
		c.fault(Fault{Kind: Index, Path: path, Message: message})
	}
	return ctx.Err()
}

// headOfRun returns the head in a run's record, or "".
func headOfRun(r runfiles.Record) cas.Hash {
	if r.Status == "done" && r.StepHash.Valid() {
		return r.StepHash
	}
	if r.Head.Valid() {
		return r.Head
	}
	return ""
}

// repair fixes what it can, moves other faulty files to the quarantine, and records its actions in the
// faults. It deletes nothing.
func repair(ctx context.Context, s Store, o Options, faults []Fault) error {
	if err := repairNodes(ctx, s, faults); err != nil {
		return err
	}
	if err := makeAgain(ctx, s, o, faults); err != nil {
		return err
	}
	if o.Home == "" {
		return nil
	}
	x := fileheads.Open(o.Home, durable.OS())
	return errors.Join(
		quarantineLines(ctx, x.QuarantineThreads, x.ThreadsPath(), faults),
		quarantineLines(ctx, x.QuarantineHistory, x.HistoryPath(), faults),
		quarantineLines(ctx, x.QuarantineRegistry, x.RegistryPath(), faults),
		quarantineLines(ctx, x.QuarantineFacts, x.FactsPath(), faults),
	)
}

// repairNodes removes damaged nodes and seals, so that they can be put again. A readable seal that doesn't match
// stays: the node might be the wrong one, and only a person can decide.
func repairNodes(ctx context.Context, s Store, faults []Fault) error {
	for i := range faults {
		f := &faults[i]
		var err error
		remove := s.Quarantine
		switch f.Kind {
		case Damaged:
			if _, err = s.Get(ctx, f.Hash); !errors.As(err, new(*cas.CorruptError)) {
				continue // another process has put it again
			}
		case Seal:
			if _, err = s.Seal(f.Hash); !errors.As(err, new(*cas.SealError)) {
				continue
			}
			remove = s.QuarantineSeal
		default:
			continue
		}
		to, err := remove(ctx, f.Hash)
		if err != nil {
			return err
		}
		f.Repaired = "moved to " + to
	}
	return nil
}

// makeAgain restores missing schemas of our kinds, which are built into this program.
func makeAgain(ctx context.Context, s Store, o Options, faults []Fault) error {
	for i := range faults {
		f := &faults[i]
		n, ok := s.Kinds().Builtin(f.Hash)
		if !ok || f.Kind != Missing && f.Kind != Damaged {
			continue
		}
		n.Timestamp = o.Now().UnixMilli()
		if err := s.Commit(ctx, n); err != nil {
			return err
		}
		if f.Repaired != "" {
			f.Repaired += ", and "
		}
		f.Repaired += "recreated"
	}
	return nil
}

// quarantineLines moves the unreadable lines of a file to the quarantine.
func quarantineLines(ctx context.Context, quarantine func(context.Context) (int, string, error), path string,
	faults []Fault) error {
	n, to, err := quarantine(ctx)
	if err != nil {
		return err
	}
	what := "the line was moved to " + to
	if n == 0 { // the file was lost
		what = "the file was rewritten"
	}
	for i := range faults {
		f := &faults[i]
		if f.Kind == Index && f.Hash == "" && f.Path == path {
			f.Repaired = what
		}
	}
	return nil
}
