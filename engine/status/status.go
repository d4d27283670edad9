// Package status reads the state of threads: which role is next, what works on it, what it has cost and may
// still cost, and how the last try ended. It derives all of this from the nodes, the heads, the config and
// the run directories. A [Reader] takes no lock and changes nothing except the sums that package budget
// saves.
//
//   - status.go: the moderator's decision at a node of a thread;
//   - cost.go: the limits and the cost of a thread and its children;
//   - show.go, overview.go: the state of one thread, or of many, with their last runs;
//   - run.go, failure.go: what works on a thread, what its last run has reported, and how failures are handled;
//   - children.go, actions.go: the children of the next role or of an earlier one, and what a user can do.
//
// Package engine acts on this state.
package status

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/locker"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/config"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
	"github.com/united-workforce/uwf/util/secret"
	"github.com/united-workforce/uwf/util/threadid"
)

// Reader reads the threads of a home. Create it as a literal; Locks and Warn are optional.
type Reader struct {
	Env   env.Env // includes .env
	Dirs  home.Dirs
	FS    durable.FS
	Store cas.Store
	Heads heads.Heads
	Locks locker.Locker // locks of threads; nil means files of the home
	// ReadOnly also prevents saving sums.
	ReadOnly bool
	// Config loads config.yaml on first use. A thread whose workflow sets all limits can be read without it.
	Config func(ctx context.Context) (protocol.Config, error)
	Files  *config.Files // config.yaml and .env; nil means that they are read whenever they are needed
	Warn   func(string)  // called with warnings, if not nil
	// Hints, if not nil, returns the front end's hints for reasons. It must be safe for concurrent use.
	Hints func(...protocol.Reason) []string

	// lists means that threads are only listed: prompts for agents are not rendered.
	lists bool
	// ran holds the threads that have a run directory; nil if unknown.
	ran map[string]bool
	// workflows caches workflows, if not nil.
	workflows map[protocol.Hash]protocol.Workflow
	// quiet is a thread whose run directory has nothing to add.
	quiet string
	// limitsBy caches the limits of workflows, if not nil.
	limitsBy map[protocol.Hash]protocol.Limits
	// factsOf, if not nil, returns known facts of a thread, which are then not read from Heads.
	factsOf func(thread string) (heads.Facts, bool)
	// bounds caches the limits of children by parent, if not nil.
	bounds map[string][]bound
	// costs caches the [cost] of children, if not nil.
	costs *sync.Map
	// recall caches the nodes of one step; nil means that Store is read.
	recall cas.Reader
}

// HintsOf returns the front end's hints for an error.
func (r *Reader) HintsOf(e *protocol.Error) []string {
	return slices.Concat(e.Hints, r.HintsFor(e.Reasons...))
}

// HintsFor returns the front end's hints for reasons.
func (r *Reader) HintsFor(why ...protocol.Reason) []string {
	if r.Hints == nil {
		return nil
	}
	return r.Hints(why...)
}

// ConfigOnce returns a reader that loads config.yaml at most once, so that an operation sees a consistent
// config.
func (r *Reader) ConfigOnce() *Reader {
	var (
		with = *r
		once sync.Once
		c    protocol.Config
		err  error
	)
	with.Config = func(ctx context.Context) (protocol.Config, error) {
		once.Do(func() { c, err = r.Config(ctx) })
		return c, err
	}
	return &with
}

// Remembering returns a reader that reads each workflow once. It is not safe for concurrent use.
func (r *Reader) Remembering() *Reader {
	with := *r
	with.workflows = map[protocol.Hash]protocol.Workflow{}
	return &with
}

// Recalling returns a reader that reads each node only once. Use it for a single step.
func (r *Reader) Recalling() *Reader {
	with := *r
	with.recall = cas.Recalling(r.Store)
	return &with
}

// Knowing returns a reader that uses the given facts of a thread.
func (r *Reader) Knowing(thread string, facts *heads.Facts) *Reader {
	with := *r
	with.factsOf = func(id string) (heads.Facts, bool) { return *facts, id == thread }
	return &with
}

// knowingAll returns a reader that has read the facts of all threads.
func (r *Reader) knowingAll(ctx context.Context) *Reader {
	with := *r
	// Ignore unreadable lines: their threads need a person's attention anyway.
	if all, _ := r.Heads.AllFacts(ctx); all != nil {
		with.factsOf = func(thread string) (heads.Facts, bool) { return all[thread], true }
	}
	return &with
}

// Nodes returns the node reader.
func (r *Reader) Nodes() cas.Reader {
	if r.recall == nil {
		return r.Store
	}
	return r.recall
}

// facts returns the state of a thread outside its chain.
func (r *Reader) facts(ctx context.Context, id string) (heads.Facts, error) {
	if r.factsOf != nil {
		if facts, known := r.factsOf(id); known {
			return facts, nil
		}
	}
	return r.Heads.Facts(ctx, id)
}

// Workflow returns a workflow, from the cache if the reader has one.
func (r *Reader) Workflow(ctx context.Context, h protocol.Hash) (protocol.Workflow, error) {
	if w, ok := r.workflows[h]; ok {
		return w, nil
	}
	w, err := cas.Read[protocol.Workflow](ctx, r.Nodes(), h)
	if err == nil && r.workflows != nil {
		r.workflows[h] = w
	}
	return w, err
}

// Locker returns the locker of threads.
func (r *Reader) Locker() locker.Locker {
	if r.Locks == nil {
		return locker.Files{Dir: r.Dirs.Locks()}
	}
	return r.Locks
}

// RunDir returns the directory of a thread's run files.
func (r *Reader) RunDir(id string) rundir.Dir {
	return rundir.Dir{Path: r.Dirs.Run(id), None: r.nothingToAdd(id),
		Aside: filepath.Join(r.Dirs.Home, "quarantine"), FS: r.FS, Warn: r.Warn}
}

// nothingToAdd reports whether a thread is known to have no run directory, or one that has nothing to add.
func (r *Reader) nothingToAdd(id string) bool { return id == r.quiet || r.ran != nil && !r.ran[id] }

// Secrets returns the texts that must not be stored or shown.
func (r *Reader) Secrets() *secret.Set {
	if r.Files == nil {
		return secret.NewSet(config.Of(r.Dirs).Secrets(r.Env)...)
	}
	return secret.NewSet(r.Files.Secrets(r.Env)...)
}

// Lookup returns a thread's head, and its history entry if it has ended.
func (r *Reader) Lookup(ctx context.Context, id string) (protocol.Hash, *heads.Ended, error) {
	if err := CheckID(id); err != nil {
		return "", nil, err
	}
	if err := r.complete(map[string]bool{}); err != nil {
		return "", nil, err
	}
	at, err := heads.Find(ctx, r.Heads, id)
	if errors.Is(err, heads.ErrNoThread) {
		return "", nil, noThread(id, err)
	}
	return at.Head, at.End, err
}

// Head returns the head of a thread, active or ended.
func (r *Reader) Head(ctx context.Context, thread string) (protocol.Hash, error) {
	head, _, err := r.Lookup(ctx, thread)
	return head, fault.OrNil(err)
}

// CheckID returns an error if id is not a valid thread ID. IDs become file names.
func CheckID(id string) error {
	if canonical, err := threadid.Parse(id); err != nil || canonical != id {
		return noThread(id, heads.ErrNoThread)
	}
	return nil
}

func noThread(id string, cause error) error {
	err := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("thread not found: %s", id), Err: cause}
	return err.Because("no-such-thread")
}

// Position is a thread's state at a node: its newest nodes and the moderator's decision.
type Position struct {
	ID       string
	Thread   *thread.Thread
	Workflow protocol.Workflow
	Facts    heads.Facts
	Parked   int64  // Unix milliseconds until which it is rate-limited; 0 if it is not
	Root     string // its directory; "" means the one in its start node
	State    moderator.State
	Next     moderator.Decision
	// Problem explains why there is no decision although the nodes are intact: no edge matches, or the config
	// is unreadable.
	Problem  error
	Children children.Children // children of the next role, if it has any
	Lifted   bool              // a user has lifted the step limit
	Again    bool              // the next role made the last step and is asked again
	Form     any               // schema of the requested answer; nil if no answer is requested
	UsedUp   string            // limit that ended the last step early; "" if none

	waits  bool    // it was rate-limited at this head; the limit may have reset
	bounds []bound // limits of the thread's ancestors
	heldBy *bound  // the ancestor's limit that is reached
	stuck  bool    // the graph has no edge, so another try cannot help
	ofRun  bool    // UsedUp is the run's remaining limit, not the step's own
	hints  func(...protocol.Reason) []string
}

// Position reads the head, the start, the workflow and the last output; the cost doesn't depend on the
// thread's length. If one of them is unreadable, it returns an error and what it has read.
func (r *Reader) Position(ctx context.Context, id string, head protocol.Hash) (*Position, error) {
	p := &Position{ID: id, hints: r.Hints}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return p, r.headError(ctx, id, head, err)
	}
	p.Thread = t
	if p.Workflow, err = r.Workflow(ctx, t.Start.Workflow); err != nil {
		return p, err
	}
	steps := &history{thread: t}
	if p.State, err = r.state(ctx, p.Workflow, t, steps); err != nil {
		return p, err
	}
	if p.Facts, err = r.facts(ctx, id); err != nil {
		return p, err
	}
	root := id
	if p.Facts.Parent != nil {
		if root, err = heads.Root(ctx, r.Heads, p.Facts.Parent.Thread); err != nil {
			return p, err
		}
	}
	if r.Dirs.Home != "" && threadid.Valid(root) { // damaged facts may contain anything
		p.State.Artifacts = r.Dirs.Artifacts(root)
	}
	if p.State.Limits, p.Problem = r.limitsInForce(ctx, p); p.Problem != nil {
		return p, nil
	}
	if p.State.Visits, err = visits(ctx, t, p.State.Limits); err != nil {
		return p, err
	}
	if budget.Bounded(p.State.Limits) {
		if p.State.Spent, err = r.costWithChildren(ctx, id, head, p.Facts); err != nil {
			return p, err
		}
	}
	if p.Facts.Parent != nil {
		if p.bounds, err = r.ancestorLimits(ctx, p.Facts.Parent); err != nil {
			return p, err
		}
	}
	if p.waits = isParked(p.Facts, head); p.waits {
		p.Parked = r.parkedUntil(p.Facts)
	}
	p.State.Lists = r.lists
	p.Next, p.Problem = moderator.Next(ctx, p.State)
	if p.Problem == nil && p.Next.Kind == moderator.Suspend && p.Place().RetriesOfAll(p.Facts) > 0 {
		p.Next, p.Problem = r.onceMoreFan(ctx, p)
	}
	if err := cmp.Or(steps.err, context.Cause(ctx)); p.Problem != nil && err != nil {
		return p, err // the graph may have an edge, but that is unknown now
	}
	p.stuck = p.Problem != nil
	if p.Problem == nil && (p.Next.Kind == moderator.Run || p.Next.Kind == moderator.Fan) {
		p.applyParentLimit()
	}
	if p.Problem == nil && p.Next.Cause == moderator.ByOutput && p.State.Last.Suspend != nil {
		if detail, err := thread.ShownDetail(ctx, r.Nodes(), t.Last.Detail); err == nil { // other agents store details in their own format
			p.UsedUp, p.ofRun = detail.UsedUp()
		}
	}
	if role := p.Workflow.Roles[p.Next.Role]; p.Problem == nil && p.Next.Kind == moderator.Suspend && role.Person {
		p.Form, err = cas.Schema(ctx, r.Nodes(), role.Frontmatter)
	}
	if p.Problem == nil && p.Next.Kind == moderator.Fan {
		p.Children, err = r.Children(ctx, p)
	}
	return p, err
}

// HeadPosition returns the position of a thread at its head.
func (r *Reader) HeadPosition(ctx context.Context, id string) (*Position, error) {
	head, _, err := r.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.Position(ctx, id, head)
}

// state returns the moderator's input, without limits.
func (r *Reader) state(ctx context.Context, w protocol.Workflow, t *thread.Thread,
	steps *history) (moderator.State, error) {
	s := moderator.State{Workflow: w, Start: t.Start, History: steps.steps(ctx), KeyOf: children.KeyOf}
	if t.Last == nil {
		return s, nil
	}
	out, err := t.Output(ctx, *t.Last)
	if err != nil {
		return s, err
	}
	s.Last = &moderator.Last{Role: t.Last.Role, Output: out.Value, Suspend: out.Suspend, Location: t.Last.Cwd,
		Failed: t.Last.Error != nil}
	s.Body = func() (string, error) {
		text, err := r.body(ctx, *t.Last, out.Type)
		steps.err = cmp.Or(steps.err, err)
		return text, err
	}
	s.Steps, s.Depth = t.Last.Index+1-t.Last.LimitBase, t.Len()
	return s, nil
}

// onceMoreFan returns the decision for a role with children that a user resumes: it continues beyond the step
// limit or, if the role has suspended the thread, asks the role again with its original input.
func (r *Reader) onceMoreFan(ctx context.Context, p *Position) (moderator.Decision, error) {
	switch p.Next.Cause {
	case moderator.ByLimit:
		p.Lifted = true
		return moderator.Route(ctx, p.State)
	case moderator.ByTarget, moderator.ByOutput:
		state, err := r.StateBefore(ctx, p)
		if err != nil {
			return p.Next, err
		}
		d, err := moderator.Route(ctx, state)
		if err != nil || d.Kind != moderator.Fan {
			return p.Next, err
		}
		p.Again = true
		return d, nil
	}
	return p.Next, nil
}

// StateBefore returns the state from which the thread's last step was made. If the role was asked again, it
// is the state of the first time.
func (r *Reader) StateBefore(ctx context.Context, p *Position) (moderator.State, error) {
	for at := p.Previous(); ; {
		t, err := thread.Open(ctx, r.Nodes(), at)
		if err != nil {
			return moderator.State{}, err
		}
		s, err := r.state(ctx, p.Workflow, t, &history{thread: t})
		if err != nil || t.Last == nil || t.Last.Prev == nil || t.Last.Role != p.Thread.Last.Role ||
			len(t.Last.Children) == 0 {
			return s, err
		}
		if d, err := moderator.Route(ctx, s); err == nil && d.Kind == moderator.Fan {
			return s, nil
		}
		at = *t.Last.Prev
	}
}

// BeforeHead returns the position from which the thread's last step was made, without a decision.
func (r *Reader) BeforeHead(ctx context.Context, pos *Position) (*Position, error) {
	t, err := thread.Open(ctx, r.Nodes(), pos.Previous())
	if err != nil {
		return nil, err
	}
	state := moderator.State{Limits: pos.State.Limits, Spent: pos.State.Spent, Artifacts: pos.State.Artifacts}
	return &Position{ID: pos.ID, Thread: t, Workflow: pos.Workflow, Facts: pos.Facts, Root: pos.Root, State: state}, nil
}

// headError adds to an error about a missing or wrong head node where that head is recorded: either the
// entry is damaged or the node is lost.
func (r *Reader) headError(ctx context.Context, id string, head protocol.Hash, err error) error {
	var kind *cas.TypeError
	_, lost := r.Store.Get(ctx, head)
	if !errors.Is(lost, cas.ErrNotFound) && !(errors.As(err, &kind) && kind.Hash == head) {
		return err
	}
	if where, ok := r.Heads.(heads.Placer); ok {
		if place := where.ThreadPlace(ctx, id); place != "" {
			return fmt.Errorf("%w (referred to in %s)", err, place)
		}
	}
	return err
}

// history reads the steps of a thread for conditions that need them.
type history struct {
	thread *thread.Thread
	err    error // why the steps are unreadable
}

// steps yields the steps, newest first. It reads two nodes per step.
func (h *history) steps(ctx context.Context) iter.Seq2[moderator.HistoryStep, error] {
	return func(yield func(moderator.HistoryStep, error) bool) {
		for s, err := range h.thread.Steps(ctx) {
			if err != nil {
				h.err = err
				yield(moderator.HistoryStep{}, err)
				return
			}
			output := func() (any, error) {
				out, err := h.thread.Output(ctx, s)
				h.err = cmp.Or(h.err, err)
				return out.Value, err
			}
			if !yield(moderator.HistoryStep{Role: s.Role, Output: output, Detail: s.Detail, Agent: s.Agent,
				Failed: s.Error != nil, Visits: s.Visits}, nil) {
				return
			}
		}
	}
}

// body returns the text after the frontmatter of a step's answer, or the whole answer if it has no
// frontmatter. An answer that was submitted as data has no body.
func (r *Reader) body(ctx context.Context, s thread.Step, schema protocol.Hash) (string, error) {
	if s.Error != nil || s.ExtractedBy == protocol.ByValue {
		return "", nil
	}
	text, err := thread.Answer(ctx, r.Nodes(), s.Detail)
	if err != nil {
		return "", err
	}
	of, err := cas.Schema(ctx, r.Nodes(), schema)
	if err != nil {
		return "", err
	}
	role, err := extract.NewRole(of)
	if err != nil {
		return "", err
	}
	if answer, err := extract.Text(ctx, text, role); err == nil {
		text = answer.Body
	}
	return strings.TrimSpace(text), context.Cause(ctx)
}

// MayWrite returns an error if the reader is read-only.
func (r *Reader) MayWrite() error {
	if r.ReadOnly {
		return fault.New(protocol.CodeUsage, "this engine is read-only")
	}
	return r.complete(map[string]bool{"FS": r.FS == nil, "Env.Rand": r.Env.Rand == nil})
}

// complete returns an error that lists the missing fields of a reader built as a literal.
func (r *Reader) complete(lacks map[string]bool) error {
	lacks["Store"], lacks["Heads"], lacks["Env.Now"] = r.Store == nil, r.Heads == nil, r.Env.Now == nil
	maps.DeleteFunc(lacks, func(_ string, lacks bool) bool { return !lacks })
	if len(lacks) == 0 {
		return nil
	}
	return fault.New(protocol.CodeUsage, "the reader of this engine lacks %s", strings.Join(slices.Sorted(maps.Keys(lacks)),
		", "))
}

// LockStore keeps the garbage collector out until the new nodes are referenced by a head or by a run's
// record.
func (r *Reader) LockStore(ctx context.Context) (release func(), err error) {
	if err := r.MayWrite(); err != nil {
		return nil, err
	}
	done, err := cas.LockShared(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // also released when the process ends
}

// Batch returns an empty batch of nodes.
func (r *Reader) Batch() *cas.Batch { return cas.NewBatch(r.Store, r.Env.Now) }

// ChosenAgents returns the agents chosen for a thread, or else for its parent. Errors are errors of the
// heads.
func (r *Reader) ChosenAgents(ctx context.Context, facts heads.Facts) (map[string]string, error) {
	const generations = 100 // exceeds the nesting limit; guards against a cycle in damaged facts
	for range generations {
		if facts.Agents != nil || facts.Parent == nil {
			break
		}
		above, err := r.Heads.Facts(ctx, facts.Parent.Thread)
		if err != nil {
			return nil, err
		}
		facts = above
	}
	return facts.Agents, nil
}
