package engine

import (
	"cmp"
	"context"
	"errors"
	"log/slog"

	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/children"
	"github.com/united-workforce/uwf/engine/internal/create"
	"github.com/united-workforce/uwf/engine/internal/decide"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/runfiles"
)

// outcome is the result of a request.
type outcome struct {
	protocol.StepOutput
	hand  *children.Child // child that receives the request, without the thread's lock; nil if none
	drive bool            // the children must be driven, without the thread's lock
	idle  bool            // nothing was done, and there is nothing to report
}

// ask decides on the next action for a request and carries it out, until the request is done.
func (e *Engine) ask(ctx context.Context, h *lockedThread, r request) (outcome, error) {
	settled := false
	for range mostActions {
		s, err := e.read(ctx, h, r)
		if err != nil {
			return outcome{}, err
		}
		a, err := s.decide(ctx)
		var out outcome
		if a.Reason == "ended" && settled && r.Verb == decide.Step { // there was nothing else to do
			out.StepOutput, err = e.Reader.Show(ctx, h.id)
			return out, err
		}
		if err == nil {
			s.log(ctx, a)
			out, err = s.do(ctx, a)
		}
		if s.release(); err != nil && s.becomesStep(ctx, a) {
			w := r.Work
			w.Do, w.Prompt, w.At, w.Expect, w.Answer, w.Fresh, w.KeepFiles = DoStep, "", "", "", nil, false, false
			r = w.request()
			e = e.reading(e.Reader.Recalling())
			continue
		}
		if err != nil || !a.Again || out.drive {
			return out, err
		}
		settled = settled || a.Kind == decide.Finish || a.Kind == decide.TakeBack || a.Kind == decide.LeaveFiles ||
			a.Kind == decide.Close
		switch a.Kind {
		case decide.Move:
			r.Earlier, r.At, r.Expect = false, "", ""
		case decide.RaiseAttempt: // the user has agreed
			r.Verb, r.Prompt = decide.Step, ""
		case decide.DiscardResult, decide.Close:
			r.Discard = false
		}
		e = e.reading(e.Reader.Recalling())
	}
	return outcome{}, fault.New(protocol.CodeFailed, "thread %s made no progress after many decisions", h.id).Because("endless")
}

// mostActions stops an endless loop; no request needs as many.
const mostActions = 20

// log logs why an action was chosen.
func (s *session) log(ctx context.Context, a decide.Action) {
	if s.e.Log != nil {
		s.e.Log.DebugContext(ctx, "decided", slog.String("thread", s.locked.id), slog.String("request", s.Request.String()),
			slog.String("facts", s.facts.String()), slog.String("reason", string(a.Reason)), slog.String("action",
				a.Kind.String()))
	}
}

// release releases the locks that were taken to read the facts.
func (s *session) release() {
	s.change.Release()
	s.change = nil
}

// do carries out the chosen action.
func (s *session) do(ctx context.Context, a decide.Action) (out outcome, err error) {
	if a.Kind > decide.Report && a.Kind != decide.Cancel { // don't create a worktree for a refused request
		if err := s.e.Files().Recreate(ctx, s.locked.files()); err != nil {
			return out, err
		}
	}
	switch a.Kind {
	case decide.Refuse:
		return out, s.refusal(ctx, a)
	case decide.Report:
		return s.report(ctx, a)
	case decide.RunAgent, decide.RunCommand:
		out.StepOutput, err = s.begin(ctx, s.pos, s.task)
	case decide.RunAsked:
		out.StepOutput, err = s.runPrompt(ctx)
	case decide.Replace:
		out.StepOutput, err = s.replace(ctx)
	case decide.Adopt:
		out.StepOutput, err = s.adopt(ctx)
	case decide.Reject:
		err = s.open.reject(s.unfit)
	case decide.Close:
		err = s.closeRun(ctx)
	case decide.DiscardResult:
		err = s.discard(ctx)
	case decide.RecordAnswer:
		out.StepOutput, err = s.answer(ctx)
	case decide.RecordFailure:
		out.StepOutput, err = s.recordFailure(ctx)
	case decide.CreateChildren:
		out.StepOutput, err = s.createChildren(ctx)
	case decide.DriveChildren:
		out.StepOutput, out.drive = s.pos.Output(), true
	case decide.HandToChild:
		child := s.pos.Children[s.pos.Children.Suspended()]
		out.StepOutput, out.hand = s.pos.Output(), &child
	case decide.RaiseAttempt:
		out.StepOutput, err = s.raiseAttempt(ctx)
	case decide.Join:
		out.StepOutput, err = s.join(ctx)
	case decide.Archive:
		out.StepOutput, err = s.e.archive(ctx, s.locked, s.pos)
	case decide.Move:
		out.StepOutput, err = s.move(ctx)
	case decide.Finish:
		out.StepOutput, err = s.finish(ctx)
	case decide.TakeBack:
		err = s.takeBack(ctx, s.intent)
	case decide.LeaveFiles:
		out.StepOutput, err = s.leaveFiles(ctx)
	case decide.Queue:
		out.StepOutput, err = s.queue(ctx)
	case decide.Cancel:
		err = s.e.killAll(ctx, s.locked)
	case decide.Unpark:
		err = s.e.setParked(ctx, s.locked, status.NotParked)
	default:
		err = fault.New(protocol.CodeFailed, "this engine cannot do the next action: %s", a.Kind)
	}
	return out, err
}

// report returns what the thread waits for.
func (s *session) report(ctx context.Context, a decide.Action) (out outcome, err error) {
	out.StepOutput = s.pos.Output()
	switch a.Reason {
	case "not-due":
		out.idle = true
	case "rate-limited":
		if s.limited.UntilMs > s.pos.Parked { // keep the record: it may contain a user's prompt
			if err := s.e.setParked(ctx, s.locked, s.limited.UntilMs); err != nil {
				return out, err
			}
			out.StepOutput, err = s.state(ctx)
		}
	case "account-limited": // list the thread as waiting until the limit resets
		out.StepOutput, err = s.queue(ctx)
	}
	return out, err
}

// state returns the thread's state after a change of its facts.
func (s *session) state(ctx context.Context) (protocol.StepOutput, error) {
	pos, err := s.reader.Position(ctx, s.locked.id, s.locked.head)
	if err != nil {
		return protocol.StepOutput{}, err
	}
	return pos.Output(), nil
}

// begin starts the visit of a role.
func (s *session) begin(ctx context.Context, pos *status.Position, t task) (out protocol.StepOutput, err error) {
	if err := create.Runnable(pos.Workflow); err != nil {
		return out, err
	}
	a := s.e.newAttempt(s.locked, pos, t)
	a.more, a.toEnd = s.more, s.toEnd
	if err = s.cast(ctx, a); err != nil {
		return out, a.unable(err)
	}
	if a.cmd.Plain != nil {
		line := moderator.CommandLine(a.cmd.Argv, a.cmd.Env)
		if err := a.e.Origins().Words(ctx, a.pos, a.locked.facts, a.task.role, line); err != nil {
			return out, a.unable(err)
		}
		if a.granted, err = a.e.Origins().Granted(ctx, pos, t.role); err != nil {
			return out, a.unable(err)
		}
	}
	if _, err := s.e.Casting().Unpriced(ctx, pos.State.Limits, a.cmd, pos.Workflow.Name, t.role); err != nil {
		return out, a.unable(err)
	}
	return a.play(ctx, s.StepOptions)
}

// cast chooses the agent or command for an attempt's role.
func (s *session) cast(ctx context.Context, a *attempt) (err error) {
	a.cmd, err = a.e.Casting().Player(ctx, s.Choices(), a.pos.Workflow, a.task.role, a.task.command, a.task.env)
	return err
}

// runPrompt runs a role with a user's prompt, taken from the request or from the record.
func (s *session) runPrompt(ctx context.Context) (protocol.StepOutput, error) {
	if s.Verb == decide.Resume {
		return s.begin(ctx, s.pos, s.task)
	}
	t, err := s.woken(ctx)
	if err != nil {
		return protocol.StepOutput{}, err
	}
	return s.begin(ctx, s.pos, t)
}

// woken returns the task of the record, including the user's prompt.
func (s *session) woken(ctx context.Context) (task, error) {
	t := recorded(s.record)
	prompt, err := s.promptOf(ctx, s.record.PromptHash)
	if err == nil {
		t.prompt = prompt
		t, err = s.e.onceMore(ctx, s.pos, t)
	}
	return t, err
}

// replace runs the role of the head's step again. If that fails, the old step and its files stay.
func (s *session) replace(ctx context.Context) (out protocol.StepOutput, err error) {
	t, keep := s.task, s.KeepFiles
	if s.Verb != decide.Poke {
		if t, err = s.woken(ctx); err != nil {
			return out, err
		}
		keep = s.record.KeepFiles
	}
	before, err := s.reader.BeforeHead(ctx, s.pos)
	if err != nil {
		return out, err
	}
	t.keepFiles = keep
	var i rundir.Intent
	if !keep {
		if t.known, t.putBack, err = s.trees(ctx); err != nil {
			return out, err
		}
	}
	if t.putBack != "" {
		i = rundir.Intent{Kind: rundir.Prepared, HeadFrom: s.locked.head, TreeFrom: t.known, TreeTo: t.putBack}
		if err := s.change.Claim(); err != nil {
			return out, err
		}
		if err := s.dir.SetIntent(i); err != nil {
			return out, err
		}
	}
	if _, err = s.e.eachChild(ctx, s.locked, false, s.e.Stop); err == nil {
		t.kept, err = s.change.WriteLocked(ctx)
	}
	if err == nil {
		out, err = s.begin(ctx, before, t)
	}
	s.release()
	if now := s.dir.Read(); i.Kind == "" || out.StepHash != "" || now.Unfinished(i.HeadFrom) {
		return out, err
	}
	return out, errors.Join(err, s.takeBack(context.WithoutCancel(ctx), i))
}

// adopt makes the pending result the thread's next step. Finished work is never paid for twice, whichever
// agent did it.
func (s *session) adopt(ctx context.Context) (out protocol.StepOutput, err error) {
	a := s.open
	a.record.More = a.more
	if s.ran != nil {
		return s.adoptCommand(ctx, a)
	}
	if a.record.Agent == "" {
		a.record.Agent = s.step.Step.Agent
	}
	a.recordMissedLimit(ctx, s.record, s.result)
	a.started(a.record.Agent, true)
	defer func() { a.ended(out, err) }()
	out, err = a.advance(ctx, s.step)
	out.Adopted = true
	if err == nil && s.Verb == decide.Answer { // the answer in the request is not used
		err = fault.New(protocol.CodeFailed, "role %q already has an answer",
			a.task.role).Because("answered-before", "thread", s.locked.id)
	}
	return out, err
}

// adoptCommand makes the step of a command that ended earlier.
func (s *session) adoptCommand(ctx context.Context, a *attempt) (out protocol.StepOutput, err error) {
	if name := s.record.Lacks(s.reader.Env); name != "" {
		return out, fault.New(protocol.CodeFailed, "cannot use the result of role %q: %s has another value than "+
			"for its command, so it cannot be hidden in the output", s.record.Role, name).Because("token-changed", "thread", s.locked.id)
	}
	if t := s.task; s.facts.Asked == decide.ByGraph {
		t.cwd, a.task = a.task.cwd, t
	} else if a.task, err = s.woken(ctx); err != nil {
		return out, err
	}
	if err = s.cast(ctx, a); err != nil {
		return out, err
	}
	a.putBack()
	a.started(a.cmd.Name, true)
	defer func() { a.ended(out, err) }()
	out, err = a.concluded(ctx, *s.ran, nil)
	if out.Adopted = true; err != nil {
		a.conclude(decide.AfterFailure(a.failure(err, decide.Policy{}), decide.Policy{}))
	}
	return out, err
}

// closeRun closes a run that left no result. Its cost is counted.
func (s *session) closeRun(ctx context.Context) error {
	r := s.record
	a := s.open
	a.recordMissedLimit(ctx, r, s.result)
	if r.Damaged {
		s.e.warn(s.dir.File(runfiles.RecordFile) + " is damaged, and no finished step was found")
		r = a.newRecord()
	} else {
		a.cutShort(r, s.result)
		if s.facts.Run == decide.InFlight && !s.Discard {
			s.warnCut(r)
		}
	}
	r.Status = rundir.Stopped
	return s.dir.Write(r)
}

func (s *session) warnCut(r rundir.Record) {
	s.e.warn("a run of role \"" + r.Role + "\" was interrupted and left no result in " + s.dir.Path)
}

// discard closes a run whose result the user discards, and restores the files from before it.
func (s *session) discard(ctx context.Context) error {
	known, to, err := s.filesOfResult(ctx)
	if err != nil {
		return err
	}
	i := rundir.Intent{Kind: rundir.Prepared, HeadFrom: s.locked.head, TreeFrom: to, TreeTo: known}
	if s.facts.Intent != decide.NoIntent {
		i.TreeFrom = s.intent.TreeFrom
	}
	if s.KeepFiles {
		i.TreeFrom = ""
	}
	if i.TreeFrom != "" { // don't revert later changes by others
		if s.change, err = s.e.Files().Plan(ctx, s.locked.files(), s.pos.Dir(), known, i.TreeFrom); err == nil {
			err = s.change.Claim()
		}
		if err == nil {
			err = s.dir.SetIntent(i)
		}
		if err != nil {
			return err
		}
		s.release()
	}
	r := s.record
	if !s.known() {
		r = s.open.newRecord()
	}
	if s.facts.Result == decide.Ready {
		if err := s.open.spend(ctx, s.step.Hash, s.step.Step.Usage); err != nil {
			return err
		}
		defer func() { _ = s.open.day.Settle(s.locked.id) }() // see advance
	}
	r.Status, r.Reason = rundir.Stopped, "its result was discarded"
	if err := s.dir.Write(r); err != nil || i.TreeFrom == "" {
		return err
	}
	return s.takeBack(ctx, i)
}

// filesOfResult returns the files after and before the pending result; "" means unknown.
func (s *session) filesOfResult(ctx context.Context) (after, before protocol.Tree, err error) {
	if s.result.StepHash != "" {
		kept, err := s.e.Files().StepFiles(ctx, s.result.StepHash)
		if err == nil {
			return kept.After, kept.Before, nil
		}
		if !errors.As(err, new(*worktree.NoFilesError)) && s.facts.Result == decide.Ready {
			return "", "", err
		}
	}
	if last := s.pos.Thread.Last; last == nil || last.Files == nil {
		return "", "", nil
	}
	kept, err := s.e.Files().FilesOf(ctx, s.pos.Thread)
	if errors.As(err, new(*worktree.NoFilesError)) {
		err = nil
	}
	return "", kept.After, err
}

// queue queues a request until the provider's limit resets.
func (s *session) queue(ctx context.Context) (out protocol.StepOutput, err error) {
	a := s.e.newAttempt(s.locked, s.pos, s.task)
	a.task.keepFiles = s.KeepFiles
	if s.Verb == decide.Poke {
		if a.pos, err = s.reader.BeforeHead(ctx, s.pos); err != nil {
			return out, err
		}
	}
	a.more, a.toEnd = s.more, s.toEnd
	if err = s.cast(ctx, a); err != nil {
		return out, a.unable(err)
	}
	account := a.e.Casting().Account(ctx, a.cmd, a.pos.Workflow.Name, a.task.role)
	return a.park(ctx, a.notStarted(s.limited, account.Name))
}

// createChildren creates the missing children.
func (s *session) createChildren(ctx context.Context) (out protocol.StepOutput, err error) {
	if err := s.e.maker().Children(ctx, s.locked.files(), s.pos); err != nil {
		return out, err
	}
	if s.pos.Children, err = s.reader.Children(ctx, s.pos); err != nil {
		return out, err
	}
	out = s.pos.Output()
	if out.Status == protocol.StatusIdle && len(s.pos.Children) > 0 && !s.pos.Children.AllEnded() {
		out.Status = protocol.StatusWaitingForChildren
	}
	return out, nil
}

// raiseAttempt starts a new attempt of one child, or of all children of a role that a user resumes. It stops
// a child before it raises the number, so that two agents never work on the same files. It cancels the child
// after that, so that the child never counts as failed.
func (s *session) raiseAttempt(ctx context.Context) (out protocol.StepOutput, err error) {
	place := s.pos.Place()
	if s.Verb != decide.Retry {
		return out, s.e.raise(ctx, s.locked, place.AttemptKey(""))
	}
	k := s.child()
	if k == nil || k.Head == "" {
		return out, s.e.raise(ctx, s.locked, place.AttemptKey(s.Key))
	}
	held, _, err := s.e.seize(ctx, k.ID, true)
	if err != nil {
		return out, err
	}
	defer held.release()
	if err := s.e.raise(ctx, s.locked, place.AttemptKey(s.Key)); err != nil || held.ended != nil {
		return out, err
	}
	if err := s.putBackChild(ctx, held); err != nil {
		s.e.warn("cancelled thread " + k.ID + " without restoring its files: " + err.Error())
	}
	return out, s.e.killAll(ctx, held)
}

// putBackChild settles the interrupted work of a child that is about to be cancelled.
func (s *session) putBackChild(ctx context.Context, h *lockedThread) error {
	if !s.reader.CutOff(h.id) {
		return nil
	}
	if err := s.e.settle(ctx, h, Work{}); err != nil {
		return err
	}
	c := s.e.reading(s.reader.Knowing(h.id, &h.facts)).newSession(h)
	if err := cmp.Or(c.readIntent(ctx), c.readPosition(ctx)); err != nil {
		return err
	}
	if c.facts.Intent == decide.Prepared {
		return c.takeBack(ctx, c.intent)
	}
	_, err := c.finish(ctx)
	return err
}

// child returns the child of the next role that the request names, or nil.
func (s *session) child() *children.Child {
	for i := range s.pos.Children {
		if s.pos.Children[i].Key == s.Key {
			return &s.pos.Children[i]
		}
	}
	return nil
}

// join makes a step of the children's results. If the joined result doesn't match the role's schema, the
// children stay and the join can be retried.
func (s *session) join(ctx context.Context) (out protocol.StepOutput, err error) {
	a := s.byItself(s.pos, s.task, protocol.JoinAgent)
	if a.task.cwd, err = a.workplace(ctx); err != nil {
		return out, a.unable(err)
	}
	if err := a.keepFiles(ctx); err != nil {
		return out, err
	}
	defer a.kept.Release()
	out, err = a.withoutProcess(ctx, func() (protocol.Result, error) { return a.joinChildren(ctx) })
	if a.joinFailed {
		a.conclude(decide.Then{Kind: decide.ThenExhausted})
	}
	return out, err
}

// byItself returns an attempt that starts no program.
func (s *session) byItself(pos *status.Position, t task, player string) *attempt {
	a := s.e.newAttempt(s.locked, pos, t)
	a.more, a.toEnd, a.cmd = s.more, s.toEnd, agentselect.Command{Name: player, Written: []string{}}
	return a
}

// setFacts changes the facts of a locked thread.
func (e *Engine) setFacts(ctx context.Context, h *lockedThread, change heads.Facts) error {
	if err := e.Reader.Heads.SetFacts(ctx, h.id, change); err != nil {
		return err
	}
	var err error
	h.facts, err = e.Reader.Heads.Facts(ctx, h.id)
	return err
}
