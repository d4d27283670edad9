package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/cas/thread"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/internal/verify"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/snapshot"
	"github.com/united-workforce/uwf/util/runfiles"
)

// request is a user's request and the data to carry it out.
type request struct {
	decide.Request
	Work
}

// session holds what is known about a thread, read once per decision under the thread's lock.
type session struct {
	e      *Engine
	reader *status.Reader // the engine's reader
	request
	locked *lockedThread
	dir    rundir.Dir
	record rundir.Record
	intent rundir.Intent
	pos    *status.Position
	facts  decide.Facts

	unread error  // why the thread cannot be read
	parent string // ancestor that keeps the thread from running
	// parentUndone means that steps of the parent were undone.
	parentUndone bool
	undone       *thread.Thread   // thread at the step that a redo restores; nil if none
	target       *status.Position // for a poke: position at the repeated step

	task   task  // the requested task
	notask error // why there is no task

	open   *attempt // attempt of the run in flight
	result protocol.Result
	step   verify.Accepted
	ran    *agentproc.Outcome // outcome of a command that has ended
	unfit  error              // why the run's result is invalid

	change  *worktree.Change  // planned change of the files
	looked  *[2]protocol.Tree // trees of the change; nil if not computed yet
	limited limits.Limit      // limit of the account
}

func (e *Engine) newSession(h *lockedThread) *session {
	return &session{e: e, reader: &e.Reader, locked: h, dir: e.Reader.RunDir(h.id)}
}

// read reads the facts of a thread. [session.decide] reads those that need a snapshot.
func (e *Engine) read(ctx context.Context, h *lockedThread, r request) (*session, error) {
	s := e.newSession(h)
	s.request = r
	s.record = s.dir.Read()
	f := &s.facts
	switch {
	case h.ended == nil:
	case h.ended.Status == protocol.StatusFailed:
		f.Life = decide.Failed
	case h.ended.Status == protocol.StatusCompleted:
		f.Life = decide.Completed
	default:
		f.Life = decide.Cancelled
	}
	f.Busy = e.agentAlive(ctx, h, s.dir, s.record)
	s.HeadMoved = r.Expect != "" && r.Expect != h.head || r.Answer != nil && r.Answer.At != "" && r.Answer.At != h.head
	if f.Busy || s.HeadMoved || f.Life == decide.Cancelled {
		return s, nil
	}
	f.Barrier = h.barrier
	if err := s.readOwner(ctx); err != nil {
		return s, err
	}
	for _, read := range []func(context.Context) error{s.readIntent, s.readPosition, s.readTask, s.readRun} {
		if err := read(ctx); err != nil {
			if ctx.Err() != nil {
				return s, err
			}
			s.unread, f.Barrier = err, decide.Unreadable
			return s, nil
		}
	}
	return s, nil
}

// readOwner determines whether an ancestor keeps a child from running.
func (s *session) readOwner(ctx context.Context) error {
	child := s.locked.facts
	for range maxAncestors {
		p := child.Parent
		if p == nil {
			return nil
		}
		head, ended, err := s.reader.Lookup(ctx, p.Thread)
		if errors.Is(err, heads.ErrNoThread) {
			return nil // it is not in this home, or was removed
		}
		if err != nil {
			return err
		}
		above, err := s.reader.Heads.Facts(ctx, p.Thread)
		if err != nil {
			return err
		}
		at := children.Place{Thread: p.Thread, Head: p.Head, Role: p.Role}
		cancelled := ended != nil && ended.Status == protocol.StatusCancelled
		switch {
		case cancelled || head != p.Head || at.Attempt(above, p.Key) != p.Attempt:
			s.facts.Owner = decide.ParentMoved
		case s.reader.IsOpen(p.Thread, head):
			s.facts.Owner = decide.ParentOpen
		default:
			child = above
			continue
		}
		s.parent, s.parentUndone = p.Thread, len(above.Undone) > 0
		return nil
	}
	return nil
}

// maxAncestors exceeds the nesting limit. It guards against a cycle in damaged facts.
const maxAncestors = 100

func (s *session) readIntent(context.Context) (err error) {
	s.intent, err = s.dir.Intent()
	if err != nil && s.KeepFiles { // the files stay, so the damaged intent isn't needed
		s.intent, err = rundir.Intent{Kind: rundir.Prepared, HeadFrom: s.locked.head}, nil
	}
	switch i := s.intent; {
	case err != nil:
		return (&protocol.Error{Code: protocol.CodeCorrupt, Message: err.Error(), Err: err}).Because("intent-unreadable",
			"thread", s.locked.id)
	case i.Kind == rundir.Moving && i.HeadFrom != s.locked.head && i.HeadTo != s.locked.head:
		s.facts.Intent = decide.Settled // another process has moved the head
	case i.Kind == rundir.Moving:
		s.facts.Intent = decide.Moving
		back := slices.Contains(i.Undone, i.HeadFrom)
		s.facts.SameMove = i.HeadFrom != i.HeadTo && (s.Verb == decide.Undo && back || s.Verb == decide.Redo && !back)
	case i.Kind == rundir.Prepared && (i.HeadFrom == "" || i.HeadFrom == s.locked.head):
		s.facts.Intent = decide.Prepared
	case i.Kind != "":
		s.facts.Intent = decide.Settled
	}
	return nil
}

func (s *session) readPosition(ctx context.Context) (err error) {
	f := &s.facts
	if s.pos, err = s.e.at(ctx, s.locked); err != nil {
		return err
	}
	if s.undone, err = s.reader.Undone(ctx, s.locked.facts, s.locked.head); err != nil {
		if s.Verb == decide.Redo || ctx.Err() != nil {
			return err
		}
		err = nil
	}
	f.CanRedo = s.undone != nil
	if s.oldPoke() {
		s.intent.Kind, s.intent.HeadFrom, f.Intent = rundir.Prepared, s.locked.head, decide.Prepared
		if s.intent.TreeTo, s.intent.TreeFrom, err = s.e.Files().TreesAround(ctx, s.locked.files(), s.pos.Thread); err != nil {
			return err
		}
	}
	s.reader.Situate(s.pos, f)
	if s.plays(s.pos.Next) {
		f.Player = decide.ByAgent
	}
	f.NoChild = true
	if k := s.child(); k != nil {
		doubtful := s.reader.Doubtful(s.pos)
		f.NoChild = k.Head == "" && (doubtful == nil || doubtful.Key != k.Key)
	}
	return err
}

// oldPoke reports whether an older version of uwf, which recorded no intents, was interrupted during a poke.
// It may have restored the files from before the step.
func (s *session) oldPoke() bool {
	r, last := s.record, s.pos.Thread.Last
	return s.intent.Kind == "" && s.known() && r.Replaces && !r.Intents && r.Unfinished(s.locked.head) &&
		last != nil && last.Files != nil &&
		s.left() == nil
}

// readTask determines the requested task and checks it against the limits.
func (s *session) readTask(ctx context.Context) (err error) {
	f := &s.facts
	role := s.pos.Next.Role
	switch {
	case s.Verb == decide.Poke && s.pos.Thread.Last != nil:
		if s.target, err = s.e.then(ctx, s.locked, s.pos, s.At); err != nil {
			return err
		}
		s.Earlier = s.target.Thread.Head != s.locked.head
		if s.target.Thread.Last == nil {
			f.Last = decide.NoPlayer
			return nil
		}
		role = s.target.Thread.Last.Role
		if f.Last = status.PlayerOf(s.target.Workflow, role); f.Last < decide.ByPerson {
			s.task, err = s.pokeTask(ctx)
		}
		f.NoBudget = s.target.WithinBudget(role) != nil
	case s.Verb == decide.Resume && f.Life != decide.Active, s.Verb == decide.Resume && f.Player < decide.ByPerson &&
		f.Next >= decide.Asks && f.Next <= decide.CostLimit:
		s.task, s.notask = s.resumeTask(ctx)
		role = s.task.role
		if f.Life != decide.Active {
			f.Next, f.Player = decide.Go, status.PlayerOf(s.pos.Workflow, role)
		}
		if f.Player > decide.ByCommand || s.notask == nil {
			f.NoBudget = s.notask == nil && s.pos.WithinBudget(role) != nil
		} else {
			f.Next, f.Player = decide.Stuck, decide.NoPlayer
		}
	case f.Next == decide.Go, s.Verb == decide.Answer && f.Player == decide.ByPerson:
		if s.task, err = s.e.graphTask(ctx, s.pos, s.pos.Next); err == nil && s.pos.Lifted {
			s.task.limitBase = s.pos.Thread.Len()
		}
	}
	if err == nil && role != "" && status.PlayerOf(s.pos.Workflow, role) == decide.ByAgent && f.Life != decide.Cancelled {
		if f.Account, s.limited = s.e.accountOf(ctx, s.pos, role, s.StepOptions); f.RateLimited && s.pos.Parked > 0 {
			f.Account = decide.Limited
		}
	}
	return err
}

// then returns the thread's position at a node of its chain; "" means the head.
func (e *Engine) then(ctx context.Context, h *lockedThread, now *status.Position,
	at protocol.Hash) (*status.Position, error) {
	if at == "" || at == h.head {
		return now, nil
	}
	for s, err := range now.Thread.Steps(ctx) {
		if err != nil {
			return nil, err
		}
		if s.Hash == at {
			return e.atNode(ctx, h, at)
		}
	}
	return nil, fault.New(protocol.CodeNotFound, "thread %s has no step %s", h.id, at)
}

// pokeTask returns the task of a repeated step. If the user gives no prompt, it keeps the instructions. The
// new step has the same predecessor as the old one.
func (s *session) pokeTask(ctx context.Context) (task, error) {
	old := s.target.Thread.Last
	prompt := cmp.Or(s.Prompt, old.EdgePrompt)
	t := task{role: old.Role, prompt: prompt, cwd: s.target.Here(old.Cwd), limitBase: old.LimitBase, replaces: true}
	var err error
	if t.promptHash, err = s.reader.Batch().Add(ctx, protocol.Text(prompt)); err != nil {
		return t, err
	}
	return s.e.onceMore(ctx, s.target, t)
}

// resumeTask returns the task that resumes a thread that waits for a person. After a reached limit or a
// restart, limits count from here.
func (s *session) resumeTask(ctx context.Context) (task, error) {
	restart := s.facts.Life != decide.Active
	d, err := moderator.Resume(ctx, s.pos.State, restart, s.Prompt)
	if err != nil {
		return task{role: d.Role}, err
	}
	t, err := s.e.graphTask(ctx, s.pos, d)
	if err == nil {
		t, err = s.e.onceMore(ctx, s.pos, t)
	}
	t.resumes = true
	if restart || d.Cause == moderator.ByLimit {
		t.limitBase = s.pos.Thread.Len()
	}
	return t, err
}

// readRun determines how far the last run came, and what it left.
func (s *session) readRun(ctx context.Context) error {
	f, r := &s.facts, s.record
	f.Asked = askedOf(r)
	switch {
	case r.Missing:
		if result, left := s.dir.Finished(); !left || s.inChain(ctx, result.StepHash) {
			return nil
		}
		f.Run = decide.InFlight
	case r.Damaged:
		f.Run = decide.InFlight
	case r.Replaces && s.pos.Thread.Last == nil:
		f.Run = decide.Ended
		return nil
	case r.UsedUp(s.locked.head):
		var err error
		f.OnError, err = s.reader.OnError(ctx, s.pos, r.Role)
		if f.Run = decide.Exhausted; r.Status == rundir.Rejected && !f.OnError {
			f.Run = decide.Ended
		}
		return err
	case r.Head != s.locked.head || !r.Status.InFlight() && r.Status != rundir.Failed:
		f.Run = decide.Ended
		return nil
	case r.Status == rundir.Failed, f.RateLimited && r.Status == rundir.Starting && r.Pid == 0 &&
		f.Asked != decide.ByGraph: // it was killed while it waited
		f.Run = decide.Errored
		return nil
	default:
		f.Run = decide.InFlight
	}
	var err error
	if s.open, err = s.opened(ctx); err != nil {
		return err
	}
	if f.Result, err = s.judge(ctx); err != nil || f.Run == decide.Ended {
		return err
	}
	f.Same = s.same(ctx)
	return nil
}

// askedOf returns the kind of request that started a run.
func askedOf(r rundir.Record) decide.Asked {
	switch {
	case r.Replaces:
		return decide.ByPoke
	case r.Resumes:
		return decide.ByWords
	case r.Agent == protocol.PersonAgent:
		return decide.ByAnswer
	case r.Agent == protocol.JoinAgent:
		return decide.ByJoin
	}
	return decide.ByGraph
}

// recorded returns the task of a run. Its prompt is read when needed.
func recorded(r rundir.Record) task {
	return task{
		role: r.Role, promptHash: r.PromptHash, cwd: r.Cwd, limitBase: r.LimitBase, resumes: r.Resumes, replaces: r.Replaces,
	}
}

// known reports whether the run's record contains its task.
func (s *session) known() bool { return !s.record.Damaged && !s.record.Missing }

// opened returns the attempt of the run in flight. If its task is unknown, the attempt gets the requested
// task.
func (s *session) opened(ctx context.Context) (*attempt, error) {
	t, pos := s.task, s.pos
	if s.known() {
		t = recorded(s.record)
	}
	if t.replaces {
		from := s.pos
		if s.target != nil && !s.known() {
			from = s.target
		}
		var err error
		if pos, err = s.reader.BeforeHead(ctx, from); err != nil {
			return nil, err
		}
	}
	a := s.e.newAttempt(s.locked, pos, t)
	a.more, a.toEnd, a.record = s.more, s.toEnd, s.record
	switch s.record.Agent {
	case protocol.PersonAgent, protocol.JoinAgent:
		a.cmd = agentselect.Command{Name: s.record.Agent, Written: []string{}}
	}
	if !s.known() {
		a.record = a.newRecord()
	}
	return a, nil
}

// judge checks the result of the run in flight.
func (s *session) judge(ctx context.Context) (decide.Result, error) {
	if ran, over := oscommand.Left(runfiles.Dir(s.dir.Path)); over && s.known() &&
		s.record.Agent == protocol.CommandAgent {
		if result, submitted := s.dir.Finished(); !submitted || !s.inChain(ctx, result.StepHash) {
			s.ran = &ran
			return decide.Ready, nil
		}
	}
	result, err := s.dir.Left()
	s.result = result
	var none *agentproc.ResultError
	switch {
	case errors.As(err, &none):
		return decide.NoResult, nil
	case err != nil:
		return decide.NoResult, err
	case result.StepHash == "":
		return decide.NoResult, nil
	case s.inChain(ctx, result.StepHash):
		s.facts.Run = decide.Ended
		return decide.NoResult, nil
	}
	if _, err := s.reader.Nodes().Get(ctx, result.StepHash); errors.Is(err, cas.ErrNotFound) && s.known() {
		s.open.e.warn(fmt.Sprintf("a run of role %q left step %s, which is missing", s.record.Role,
			result.StepHash))
	}
	if s.open.task.role == "" {
		return decide.NoResult, nil
	}
	if s.step, err = s.open.accept(ctx, result); err == nil && !s.known() && !s.open.answers(ctx, s.step.Step) {
		err = verify.Rejected(result.StepHash, protocol.CodeAgent, "step %s answers another prompt", result.StepHash)
	}
	var no *verify.Rejection
	switch {
	case errors.As(err, &no):
		no.Why.Message = fmt.Sprintf("ignored the result of an interrupted run in %s: %s",
			s.dir.File(runfiles.StdoutFile), no.Why.Message)
		s.unfit = err
		return decide.Unfit, nil
	case err != nil:
		return decide.NoResult, err
	}
	return decide.Ready, nil
}

// same reports whether the run in flight has the requested task.
func (s *session) same(context.Context) bool {
	asked := s.facts.Asked
	if !s.known() { // the step's prompt was checked already
		return s.facts.Result == decide.Ready
	}
	switch s.Verb {
	case decide.Step, decide.RunDue:
		return asked == decide.ByAnswer || asked == decide.ByJoin || asked == decide.ByGraph && s.task.matches(s.record)
	case decide.Resume:
		return asked == decide.ByWords && s.notask == nil && s.task.matches(s.record)
	case decide.Poke:
		return asked == decide.ByPoke && s.task.matches(s.record)
	case decide.Answer:
		return asked == decide.ByAnswer
	}
	return false
}

// inChain reports whether the thread already contains the step. The run directory can hold an older output
// than its record, and a replacing step has the index of the step that it replaces, so only hashes
// distinguish them.
func (s *session) inChain(ctx context.Context, h protocol.Hash) bool {
	if h == s.locked.head {
		return true
	}
	made, err := cas.Read[protocol.Step](ctx, s.reader.Nodes(), h)
	if err != nil || made.Start != s.pos.Thread.StartHash || made.Index >= s.pos.Thread.Len() {
		return false
	}
	for step, err := range s.pos.Thread.Steps(ctx) {
		if err != nil || step.Index < made.Index {
			return false
		}
		if step.Hash == h {
			return true
		}
	}
	return false
}

// decide returns the next action. It plans the change of files, which costs a snapshot, only if the action
// depends on it.
func (s *session) decide(ctx context.Context) (decide.Action, error) {
	a := decide.Decide(s.facts, s.Request)
	if a.Kind != decide.Move && a.Kind != decide.Replace || s.KeepFiles || a.Kind == decide.Replace &&
		s.Verb != decide.Poke && s.record.KeepFiles {
		return a, nil
	}
	err := s.planFiles(ctx)
	if errors.As(err, new(*snapshot.UnsavedError)) && s.Verb != decide.Step && s.Verb != decide.RunDue {
		s.facts.Edited, s.unfit = true, err
		return decide.Decide(s.facts, s.Request), nil
	}
	return a, err
}

// plays reports whether a scenario plays the person who is next.
func (o StepOptions) plays(d moderator.Decision) bool {
	return o.Scenario != "" && d.Cause == moderator.ByPerson
}
