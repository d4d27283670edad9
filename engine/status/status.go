// Package status says where threads stand: which role is next, what is working on them, what
// they have cost and may still cost, and how their last try ended. It derives all of this from
// the nodes, the heads, the config and the run directories. A [Reader] takes no lock and
// changes nothing but the sums that package budget keeps.
//
//   - status.go: what the moderator makes of a thread at a node;
//   - cost.go: what a thread may cost, and has cost with those that play roles of it;
//   - show.go, overview.go: where one thread stands, or many, with their last runs;
//   - run.go: who works on a thread, and what the last run has told of;
//   - children.go: the threads that play the role that is next, or one before.
//
// Package engine acts on what is told here.
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

// Reader reads about the threads of a home. Build it as a literal; Locks and Warn may be
// left out.
type Reader struct {
	Env   env.Env // with .env
	Dirs  home.Dirs
	FS    durable.FS
	Store cas.Store
	Heads heads.Heads
	Locks locker.Locker // of threads; nil: files of the home
	// ReadOnly: no sum is kept, either.
	ReadOnly bool
	// Config loads config.yaml when it is first needed: a thread whose workflow sets every limit
	// can be read without it.
	Config func(ctx context.Context) (protocol.Config, error)
	Warn   func(string) // told what a person should know; nil: nobody is told
	// Hints are what a person can do about reasons, in this front end; nil: nothing. Several goroutines
	// call it.
	Hints func(...protocol.Reason) []string

	// workflows remembers what was read; nil: nothing is.
	workflows map[protocol.Hash]protocol.Workflow
	// factsOf is what is known of threads besides their chains; nil: Heads is asked.
	factsOf func(thread string) (heads.Facts, bool)
	// bounds remembers, by parent, what holds its children; nil: nothing is.
	bounds map[string][]bound
	// costs remembers, by child, the [cost] of children; nil: nothing is.
	costs *sync.Map
	// recall reads the nodes of one step; nil: the store.
	recall cas.Reader
}

// HintsOf returns what a person can do about an error, in this front end.
func (r *Reader) HintsOf(e *protocol.Error) []string {
	return slices.Concat(e.Hints, r.HintsFor(e.Reasons...))
}

// HintsFor is [Reader.HintsOf] for reasons.
func (r *Reader) HintsFor(why ...protocol.Reason) []string {
	if r.Hints == nil {
		return nil
	}
	return r.Hints(why...)
}

// ConfigOnce returns a reader that reads config.yaml at most once, so that one operation sees
// one config and loads it only once.
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

// Remembering returns a reader that reads each workflow once. It is for one
// goroutine.
func (r *Reader) Remembering() *Reader {
	with := *r
	with.workflows = map[protocol.Hash]protocol.Workflow{}
	return &with
}

// Recalling returns a reader that reads a node only once even if several callers need it. Use
// it for one step.
func (r *Reader) Recalling() *Reader {
	with := *r
	with.recall = cas.Recalling(r.Store)
	return &with
}

// Knowing returns a reader that takes the facts of a thread from a caller that already has
// them.
func (r *Reader) Knowing(thread string, facts *heads.Facts) *Reader {
	with := *r
	with.factsOf = func(id string) (heads.Facts, bool) { return *facts, id == thread }
	return &with
}

// knowingAll returns a reader that has read what is known of all threads.
func (r *Reader) knowingAll(ctx context.Context) *Reader {
	with := *r
	// An unreadable line concerns a thread that needs a person's attention anyway.
	if all, _ := r.Heads.AllFacts(ctx); all != nil {
		with.factsOf = func(thread string) (heads.Facts, bool) { return all[thread], true }
	}
	return &with
}

// Nodes returns the reader of nodes.
func (r *Reader) Nodes() cas.Reader {
	if r.recall == nil {
		return r.Store
	}
	return r.recall
}

// facts is what is known of a thread besides its chain.
func (r *Reader) facts(ctx context.Context, id string) (heads.Facts, error) {
	if r.factsOf != nil {
		if facts, known := r.factsOf(id); known {
			return facts, nil
		}
	}
	return r.Heads.Facts(ctx, id)
}

// Workflow reads a workflow, once if this reader is [Reader.Remembering].
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

// Locker locks threads; see package locker.
func (r *Reader) Locker() locker.Locker {
	if r.Locks == nil {
		return locker.Files{Dir: r.Dirs.Locks()}
	}
	return r.Locks
}

// RunDir is where the files of a thread's runs are.
func (r *Reader) RunDir(id string) rundir.Dir {
	return rundir.Dir{Path: r.Dirs.Run(id), Aside: filepath.Join(r.Dirs.Home, "quarantine"), FS: r.FS, Warn: r.Warn}
}

// Secrets are the texts that may be neither stored nor shown.
func (r *Reader) Secrets() *secret.Set {
	return secret.NewSet(config.Secrets(r.Dirs.Config(), r.Dirs.DotEnv(), r.Env)...)
}

// Lookup finds a thread's head, and its line in the history if it has ended.
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

// CheckID keeps anything that is not an id out of file names.
func CheckID(id string) error {
	if canonical, err := threadid.Parse(id); err != nil || canonical != id {
		return noThread(id, heads.ErrNoThread)
	}
	return nil
}

func noThread(id string, cause error) error {
	err := &protocol.Error{Code: protocol.CodeNotFound, Message: fmt.Sprintf("there is no thread %q", id), Err: cause}
	return err.Because("no-such-thread")
}

// Position is where a thread stands: its newest nodes, and what the moderator
// makes of them.
type Position struct {
	ID       string
	Thread   *thread.Thread
	Workflow protocol.Workflow
	Facts    heads.Facts
	Parked   int64  // ms: the visit goes on then; 0: it is not parked
	Root     string // where it works, "" if that is where its start says
	State    moderator.State
	Next     moderator.Decision
	// Problem is why there is no decision although the nodes are all right: the
	// graph has no answer, or the config cannot be read.
	Problem  error
	Children children.Children // that play the role that is next, if that has children
	Lifted   bool              // a limit of steps, because a person has said so
	Again    bool              // the role that is next has made the last step, too, and is asked once more
	Form     any               // the schema of the answer that a person is to give; nil: none is asked for
	UsedUp   string            // the budget that ended the last step before its work was done; "": none

	waits  bool    // for a provider, whether or not the time has come
	bounds []bound // of those whose part the thread plays
	heldBy *bound  // that is reached
	stuck  bool    // it is the graph that has no answer: stepping again cannot help
	ofRun  bool    // what was used up was what was left of the whole run's
	hints  func(...protocol.Reason) []string
}

// Position reads the head, the start, the workflow and the last output, however
// long the thread is. It returns an error if one of them cannot be read; what
// was read before it is in the position.
func (r *Reader) Position(ctx context.Context, id string, head protocol.Hash) (*Position, error) {
	p := &Position{ID: id, hints: r.Hints}
	t, err := thread.Open(ctx, r.Nodes(), head)
	if err != nil {
		return p, r.leadsNowhere(ctx, id, head, err)
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
	if r.Dirs.Home != "" && threadid.Valid(root) { // damaged facts may name anything
		p.State.Artifacts = r.Dirs.Artifacts(root)
	}
	if p.State.Limits, p.Problem = r.limits(ctx, p); p.Problem != nil {
		return p, nil
	}
	if p.State.Visits, err = visits(ctx, t, p.State.Limits); err != nil {
		return p, err
	}
	if budget.Bounded(p.State.Limits) {
		if p.State.Spent, err = r.spentTogether(ctx, id, head, p.Facts); err != nil {
			return p, err
		}
	}
	if p.Facts.Parent != nil {
		if p.bounds, err = r.above(ctx, p.Facts.Parent); err != nil {
			return p, err
		}
	}
	if p.waits = isParked(p.Facts, head); p.waits {
		p.Parked = r.parkedUntil(p.Facts)
	}
	p.Next, p.Problem = moderator.Next(ctx, p.State)
	if p.Problem == nil && p.Next.Kind == moderator.Suspend && p.Place().Asked(p.Facts) > 0 {
		p.Next, p.Problem = r.onceMoreFan(ctx, p)
	}
	if err := cmp.Or(steps.err, context.Cause(ctx)); p.Problem != nil && err != nil {
		return p, err // the graph may well have an answer, but not now
	}
	p.stuck = p.Problem != nil
	if p.Problem == nil && (p.Next.Kind == moderator.Run || p.Next.Kind == moderator.Fan) {
		p.heldAbove()
	}
	if p.Problem == nil && p.Next.Cause == moderator.ByOutput && p.State.Last.Suspend != nil {
		if detail, err := thread.ShownDetail(ctx, r.Nodes(), t.Last.Detail); err == nil { // others have details of their own
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

// HeadPosition is the position of a thread at its head.
func (r *Reader) HeadPosition(ctx context.Context, id string) (*Position, error) {
	head, _, err := r.Lookup(ctx, id)
	if err != nil {
		return nil, err
	}
	return r.Position(ctx, id, head)
}

// state is what the moderator decides over, without limits.
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

// onceMoreFan is the decision for a role with children that a person lets go on: with
// more steps than the limit, or, where it has suspended the thread, once more, as it was
// asked before.
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

// StateBefore is the state that the thread's last step was made from. If that was asked
// once more, it is the one in which it was asked for the first time.
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

// BeforeHead is the position that the thread's last step was made from. What the
// moderator made of it then plays no part.
func (r *Reader) BeforeHead(ctx context.Context, pos *Position) (*Position, error) {
	t, err := thread.Open(ctx, r.Nodes(), pos.Previous())
	if err != nil {
		return nil, err
	}
	state := moderator.State{Limits: pos.State.Limits, Spent: pos.State.Spent, Artifacts: pos.State.Artifacts}
	return &Position{ID: pos.ID, Thread: t, Workflow: pos.Workflow, Facts: pos.Facts, Root: pos.Root, State: state}, nil
}

// leadsNowhere adds to an error for a head which entry of the heads names it, if there
// is no such node, or another: then it is that line that is damaged, or the node is
// lost.
func (r *Reader) leadsNowhere(ctx context.Context, id string, head protocol.Hash, err error) error {
	var kind *cas.TypeError
	_, lost := r.Store.Get(ctx, head)
	if !errors.Is(lost, cas.ErrNotFound) && !(errors.As(err, &kind) && kind.Hash == head) {
		return err
	}
	if where, ok := r.Heads.(heads.Placer); ok {
		if place := where.ThreadPlace(ctx, id); place != "" {
			return fmt.Errorf("%w, named in %s", err, place)
		}
	}
	return err
}

// history reads the steps of a thread for conditions that ask for them.
type history struct {
	thread *thread.Thread
	err    error // why the steps could not be read
}

// steps yields the steps, newest first, reading two nodes each.
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

// body reads the text below the block of a step's answer; without a block, all of it. What came as data
// has none.
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

// MayWrite is an error if the reader is for reading alone.
func (r *Reader) MayWrite() error {
	if r.ReadOnly {
		return fault.New(protocol.CodeUsage, "this engine is read-only")
	}
	return r.complete(map[string]bool{"FS": r.FS == nil, "Env.Rand": r.Env.Rand == nil})
}

// complete names what a reader lacks that was built as a literal.
func (r *Reader) complete(lacks map[string]bool) error {
	lacks["Store"], lacks["Heads"], lacks["Env.Now"] = r.Store == nil, r.Heads == nil, r.Env.Now == nil
	maps.DeleteFunc(lacks, func(_ string, lacks bool) bool { return !lacks })
	if len(lacks) == 0 {
		return nil
	}
	return fault.New(protocol.CodeUsage, "the reader of this engine has no %s", strings.Join(slices.Sorted(maps.Keys(lacks)),
		", "))
}

// LockStore keeps the collector away until the new nodes are named by something that it reads:
// a head, or a run's record.
func (r *Reader) LockStore(ctx context.Context) (release func(), err error) {
	if err := r.MayWrite(); err != nil {
		return nil, err
	}
	done, err := cas.LockShared(ctx, r.Store)
	if err != nil {
		return nil, err
	}
	return func() { _ = done() }, nil // it is also released when the process ends
}

// Batch is one of new nodes.
func (r *Reader) Batch() *cas.Batch { return cas.NewBatch(r.Store, r.Env.Now) }

// ChosenAgents returns the agents chosen for a thread, or else for its parent. Errors come from the
// heads.
func (r *Reader) ChosenAgents(ctx context.Context, facts heads.Facts) (map[string]string, error) {
	const generations = 100 // more than threads nest: damaged facts could lead in a circle
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
