package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/heads"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/internal/agentselect"
	"github.com/united-workforce/uwf/engine/internal/budget"
	"github.com/united-workforce/uwf/engine/internal/cwd"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/engine/internal/limits"
	"github.com/united-workforce/uwf/engine/internal/oscommand"
	"github.com/united-workforce/uwf/engine/internal/retry"
	"github.com/united-workforce/uwf/engine/internal/rundir"
	"github.com/united-workforce/uwf/engine/internal/verify"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/worktree"
	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step"
	"github.com/united-workforce/uwf/step/extract"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// attempt is one attempt at the next step of a thread, made under the thread's lock.
type attempt struct {
	e      *Engine
	reader *status.Reader // the engine's reader
	locked *lockedThread
	pos    *status.Position
	task   task
	cmd    agentselect.Command
	// granted lists the secret variables that a command role receives nevertheless.
	granted []string
	dir     rundir.Dir
	record  rundir.Record
	before  proc.Moment // before its process was started
	info    StepInfo
	more    bool               // another step follows
	toEnd   bool               // the run continues to the end
	kept    *worktree.Checkout // nil if the files are not snapshotted

	joinFailed bool          // the children's results could not be joined
	failedTry  *runfiles.Try // the last failed try, already recorded; nil if none has started

	runs     int           // times the agent has run in this visit
	retries  int           // times the agent may run again
	pass     *limits.Pass  // pass of the last try; nil if the agent was not started
	waiting  *durable.Held // lock of the run that waits to start an agent; nil if none waits
	reason   string        // why the agent was not started, or why the last try failed
	blocked  blocked       // limit that keeps the current agent from starting
	soonest  blocked       // earliest limit among the previous agents
	refused  bool          // the provider refused the last try
	repeated int           // failed requests that the agent itself repeated
	day      limits.Day    // daily limit that the step's cost counts against
	retryAt  time.Time     // when the provider's limit resets; zero if unknown
}

func (e *Engine) newAttempt(h *lockedThread, pos *status.Position, t task) *attempt {
	return &attempt{e: e, reader: &e.Reader, locked: h, pos: pos, task: t, dir: e.Reader.RunDir(h.id),
		pass: &limits.Pass{}}
}

// run runs the agent in the step's directory and snapshots the files.
func (a *attempt) run(ctx context.Context) (out protocol.StepOutput, err error) {
	if a.locked.elsewhere.Refused != nil {
		return out, a.locked.elsewhere.Refused
	}
	if a.task.cwd, err = a.workplace(ctx); err != nil {
		return out, a.unable(err)
	}
	if err := a.e.Files().OpenArtifacts(ctx, a.locked.id, a.pos.State.Artifacts); err != nil {
		return out, a.unable(err)
	}
	if err := a.keepFiles(ctx); err != nil {
		return out, err
	}
	defer func() {
		a.kept.Tidy(ctx)
		a.kept.Release()
	}()
	return a.inRun(ctx, func(lock *durable.Held) (protocol.StepOutput, error) { return a.byProcess(ctx, lock) })
}

// inRun opens a run, makes the step in it, and reports its end.
func (a *attempt) inRun(ctx context.Context, step func(lock *durable.Held) (protocol.StepOutput, error)) (out protocol.StepOutput, err error) {
	a.record = a.newRecord()
	lock, err := a.prepare(ctx)
	if err != nil {
		return out, err
	}
	// Hold the lock until the end, so that the run counts as alive while its result is checked.
	defer func() { _ = lock.Unlock() }()
	a.started(a.cmd.Name, false)
	defer func() { a.ended(out, err) }()
	return step(lock)
}

// withoutProcess makes a step without starting a process.
func (a *attempt) withoutProcess(ctx context.Context,
	submit func() (protocol.Result, error)) (protocol.StepOutput, error) {
	return a.inRun(ctx, func(*durable.Held) (out protocol.StepOutput, err error) {
		release, err := a.reader.LockStore(ctx)
		if err != nil {
			return out, a.failed(rundir.Failed, err)
		}
		defer release()
		result, err := submit()
		if err != nil {
			return out, a.failed(rundir.Failed, err)
		}
		step, err := a.accept(ctx, result)
		if err != nil {
			return out, a.reject(err)
		}
		return a.advance(ctx, step)
	})
}

// byProcess starts the role's program and makes a step from its result.
func (a *attempt) byProcess(ctx context.Context, lock *durable.Held) (protocol.StepOutput, error) {
	ran, err := a.invoke(ctx, lock)
	if ran.Removed != nil {
		defer ran.Removed()
	}
	return a.concluded(ctx, ran, err)
}

// concluded makes a step from the result of a program that has ended.
func (a *attempt) concluded(ctx context.Context, ran agentproc.Outcome, err error) (out protocol.StepOutput, _ error) {
	if a.cmd.Plain != nil {
		if !ran.Contained {
			a.endLeft()
		}
		set := a.record.Secrets(a.reader.Secrets(), a.reader.Env)
		if hidden := oscommand.Hide(a.reader.FS, set, runfiles.Dir(a.dir.Path)); hidden != nil {
			err = errors.Join(err, hidden)
		}
		ran.Stderr = set.Hide(ran.Stderr)
	}
	a.repeated = ran.Result.Repeated
	// The agent suspended its work.
	a.refused, a.retryAt = err == nil && ran.Result.Kind == protocol.FailedRateLimit, time.Time{}
	if at := ran.Result.RetryAtMs; at > 0 {
		a.retryAt = time.UnixMilli(at)
	}
	for _, text := range ran.Warnings() {
		a.e.warn(text)
	}
	switch {
	case a.cmd.Plain != nil:
		if err == nil {
			ran.Result, err = a.ofCommand(ctx, ran)
		}
	case err != nil:
		a.tidy()
	}
	if err != nil {
		// A result that can still be adopted is not a failed try, unless the agent crashed.
		_, finished := a.dir.Finished()
		crashed := retry.KindOf(ran, err) == protocol.FailedCrash && !a.dir.StopRequested(a.record)
		if !finished || crashed {
			a.tried(ran, err)
			a.refused = a.failedTry != nil && a.failedTry.Kind == protocol.FailedRateLimit
			a.info.Refused = a.refused
		}
		return out, a.giveUp(ctx, ran, err)
	}
	step, err := a.accept(ctx, ran.Result)
	if err != nil {
		var no *verify.Rejection
		if errors.As(err, &no) {
			a.tried(ran, err)
			a.failedTry = nil // a rejection is final
		}
		return out, a.reject(err)
	}
	return a.advance(ctx, step)
}

// tidy ends the processes that a failed or killed agent left running, and reverts what its commands changed.
// A user who reads about the failure looks at the workspace next.
func (a *attempt) tidy() {
	a.endAgents()
	a.putBack()
}

// endAgents kills the processes that agents started for the thread.
func (a *attempt) endAgents() {
	if a.reader.Env.Get(protocol.EnvStartedFor) == a.dir.Path {
		return // an agent started this process
	}
	n, err := proc.KillMarked(protocol.EnvStartedFor + "=" + a.dir.Path)
	if n > 0 {
		a.e.warn(fmt.Sprintf("killed processes that the agent left running: %d", n))
	}
	if err != nil {
		a.e.warn("could not end all processes that the agent started: " + err.Error())
	}
}

// putBack reverts the changes of commands whose agent was killed.
func (a *attempt) putBack() {
	if a.e.PutBack == nil {
		return
	}
	if a.e.serial != nil {
		a.e.serial.Lock()
	}
	restored, err := a.e.PutBack()
	if a.e.serial != nil {
		a.e.serial.Unlock()
	}
	if restored != "" {
		a.e.warn("a command whose agent was killed " + restored)
	}
	if err != nil {
		a.e.warn("could not undo the changes of a command whose agent was killed: " + err.Error() + "; check .git/config and .git/hooks in " + a.task.cwd + " before you run git there")
	}
}

func (a *attempt) newRecord() rundir.Record {
	return rundir.Record{
		Thread: a.locked.id, Workflow: a.pos.Thread.Start.Workflow, Head: a.locked.head,
		Role: a.task.role, Agent: a.cmd.Name, Command: a.cmd.Written, PromptHash: a.task.promptHash,
		LimitBase: a.task.limitBase, Resumes: a.task.resumes, Replaces: a.task.replaces, KeepFiles: a.task.keepFiles,
		Intents: true,
		More:    a.more, Cwd: a.task.cwd, Engine: os.Getpid(), StartedAt: a.e.nowMs(), Status: rundir.Starting,
		Snapshot: a.kept.SnapshotSpec(), Granted: rundir.Fingerprints(a.locked.id, a.reader.Env, a.granted),
	}
}

// giveUp records why a run produced no step. If the agent was stopped after it had finished, the record stays
// unfinished and the next step adopts the result.
func (a *attempt) giveUp(ctx context.Context, ran agentproc.Outcome, err error) error {
	var timeout *agentproc.TimeoutError
	status := rundir.Failed
	switch {
	case a.dir.StopRequested(a.record):
		status = rundir.Stopped
		err = a.stopped(&protocol.Error{Code: protocol.CodeTerminated, Err: err,
			Message: fmt.Sprintf("thread %s was stopped while %q was running", a.locked.id, a.task.role)})
	case fault.IsSignal(err):
		status = rundir.Stopped
		err = a.stopped(err)
	case errors.As(err, &timeout):
		err = fault.Of(err).Because("timed-out", "thread", a.locked.id, "again", a.again(), "timeout",
			protocol.Span(2*timeout.After))
	default:
		return a.failed(rundir.Failed, a.explain(ctx, ran, err))
	}
	if _, finished := a.dir.Finished(); finished {
		return fault.Of(err).Because("agent-had-finished", "thread", a.locked.id, "again", a.further())
	}
	return a.failed(status, err)
}

// again returns the request that repeats this one, for use as a fact of an error reason. It asks for the
// user's prompt again, because a failed step doesn't keep it.
func (a *attempt) again() string {
	switch {
	case a.task.resumes:
		return protocol.AgainAnswer
	case a.task.replaces:
		return protocol.AgainRetry
	}
	return a.further()
}

// further returns the request that makes the remaining steps of this one.
func (a *attempt) further() string {
	if a.toEnd {
		return protocol.AgainResume
	}
	return protocol.AgainStep
}

// stopped adds to the error of a stopped step the request that continues it.
func (a *attempt) stopped(err error) error {
	again := protocol.AgainResume
	if a.task.resumes || a.task.replaces {
		again = a.again()
	}
	return fault.Of(err).Because("stopped", "thread", a.locked.id, "again", again)
}

// retried adds to a step's error the request that retries it.
func (a *attempt) retried(err error) *protocol.Error {
	return fault.Of(err).Because("step-failed", "thread", a.locked.id, "again", a.again())
}

// unable records that no agent could be started. Without the record, an error in a background worker would be
// lost.
func (a *attempt) unable(err error) error {
	if a.dir.Clear() != nil {
		return err
	}
	a.record = a.newRecord()
	return a.failed(rundir.Failed, err)
}

// failed writes the final record of a run and returns err. If the write fails, err still wins: the record
// stays unfinished, and the next step checks the agent's output again.
func (a *attempt) failed(status rundir.Status, err error) error {
	c := a.e.hidden(fault.Of(err))
	a.record.Status = status
	a.record.Error = &rundir.Error{Code: c.Code, Message: a.reader.Secrets().Hide(c.Message)}
	_ = a.dir.Write(a.record)
	return c
}

// hidden returns err with secrets removed from its message, which can quote the output of programs.
func (e *Engine) hidden(err *protocol.Error) *protocol.Error {
	text := e.Reader.Secrets().Hide(err.Message)
	if text == err.Message {
		return err
	}
	return &protocol.Error{Code: err.Code, Message: text, Hints: err.Hints, Reasons: err.Reasons, Err: err}
}

// accept checks an agent's result. The error is a [*verify.Rejection] unless reading the store failed.
func (a *attempt) accept(ctx context.Context, result protocol.Result) (verify.Accepted, error) {
	got, err := verify.Asked{
		Nodes: a.reader.Nodes(), Store: a.reader.Store, Thread: a.pos.Thread, Workflow: a.pos.Workflow, Head: a.locked.head,
		Role: a.task.role, Prompt: a.task.prompt, PromptHash: a.task.promptHash, LimitBase: a.task.limitBase, Cwd: a.task.cwd,
		RanIn: a.record.Cwd, StartedAt: a.record.StartedAt, Now: a.e.nowMs(),
		Place: func(role, location string) (string, error) { return a.e.Workplace(ctx, role, a.pos.Dir(), location) },
	}.Check(ctx, result)
	if err != nil {
		return got, err
	}
	a.kept.Check(ctx, got.Step)
	return a.withTries(ctx, got)
}

// reject records why a result was rejected, so that no later step adopts it. Other errors leave the record
// unfinished: the result may be valid, and the next step checks it again.
func (a *attempt) reject(err error) error {
	var no *verify.Rejection
	if !errors.As(err, &no) {
		return err
	}
	no.Why = a.e.hidden(no.Why.Because("result-rejected", "thread", a.locked.id, "again", a.again(), "dir", a.dir.Path))
	a.record.StepHash, a.record.Reason = no.Step, no.Why.Message
	return a.failed(rundir.Rejected, no.Why)
}

// recordMissedLimit records a rate limit that was reported to an agent whose engine was killed, unless the limit has
// reset since.
func (a *attempt) recordMissedLimit(ctx context.Context, last rundir.Record, result protocol.Result) {
	began, resets := time.UnixMilli(last.StartedAt), time.UnixMilli(result.RetryAtMs)
	if result.Kind != protocol.FailedRateLimit || !resets.After(a.reader.Env.Now()) {
		return
	}
	c, err := a.reader.Config(ctx)
	if _, known := c.Agents[last.Agent]; err != nil || !known {
		return
	}
	cmd, err := a.e.Casting().Fallback(c, last.Agent, agentselect.Choices{})
	if err != nil {
		return // the next run reports the error
	}
	account := a.e.Casting().Account(ctx, cmd, a.pos.Workflow.Name, last.Role)
	refusal := limits.Refusal{Started: began, At: began, RetryAt: resets, Reason: a.reader.Secrets().Hide(plaintext.Line(result.Error))}
	a.e.accounts().Refused(account, refusal, retry.Of(c, last.Agent))
}

// answers reports whether a step records the current prompt.
func (a *attempt) answers(ctx context.Context, s protocol.Step) bool {
	h, err := a.reader.Batch().Add(ctx, protocol.Text(s.EdgePrompt))
	return err == nil && h == a.task.promptHash
}

// advance makes an accepted step durable, moves the head to it, and determines what follows. If it fails
// before the head has moved, the record stays unfinished and the next step adopts the result.
func (a *attempt) advance(ctx context.Context, got verify.Accepted) (protocol.StepOutput, error) {
	ctx, cancel := a.finishing(ctx)
	defer cancel(nil)
	var none protocol.StepOutput
	if err := a.flush(ctx, got); err != nil {
		return none, fmt.Errorf("sync step %s to disk: %w", got.Hash, err)
	}
	if err := a.spend(ctx, got.Hash, got.Step.Usage); err != nil {
		return none, a.unmoved(err)
	}
	if a.task.replaces {
		if err := a.keepReplaced(ctx); err != nil {
			return none, a.unmoved(err)
		}
	}
	// If the process is killed between here and the move, the thread is active at its old head, and the next
	// step adopts the result.
	if err := a.e.reopen(ctx, a.locked); err != nil {
		return none, a.unmoved(err)
	}
	unpublished, err := isUnpublished(a.reader.Heads.Move(ctx, a.locked.id, a.locked.head, got.Hash))
	if err != nil {
		return none, a.unmoved(err)
	}
	a.locked.head = got.Hash
	_ = a.day.Settle(a.locked.id) // on failure, the step stays in the list of counted steps
	a.record.Status, a.record.StepHash = rundir.Done, got.Hash
	// On failure, the record refers to an older head and is ignored.
	_ = a.dir.Update(a.record)
	if len(got.Step.Tries) > 0 {
		_ = a.reader.FS.Remove(a.dir.File(runfiles.TriesFile)) // the step contains its data
	}
	budget.File{Dir: a.dir}.Add(got.Hash, got.Step)
	if err := a.dir.DropIntent(); err != nil { // a leftover intent is recognized as settled
		a.e.warn(err.Error())
	}
	if a.locked.facts.ParkedUntil > status.NotParked {
		if err := a.e.setParked(ctx, a.locked, status.NotParked); err != nil {
			a.e.warn("the thread still counts as rate-limited: " + err.Error())
		}
	}
	a.unknownCost(got.Step)
	out, err := a.e.arrive(ctx, a.locked)
	if out.Done {
		a.warnUndelivered()
		if dir := a.pos.State.Artifacts; a.locked.facts.Parent == nil && dir != "" {
			_ = a.reader.FS.Remove(dir) // only succeeds if it is empty
		}
	}
	// Copy the strings. The caller keeps the output until the last step, and it must not keep all nodes of
	// this step in memory.
	role, hash := got.Step.Role, got.Hash
	out.Role, out.StepHash, out.Agent, out.Usage = protocol.NullString(role), protocol.NullHash(hash), got.Step.Agent, got.Step.Usage
	out.Files = a.kept.Changed(ctx, got.Step)
	if unpublished != nil {
		return out, unpublished
	}
	if err == nil && !a.info.Adopted && a.dir.StopRequested(a.record) {
		err = fault.New(protocol.CodeTerminated, "thread %s was stopped after %q had finished", a.locked.id,
			got.Step.Role).Because("stopped", "thread", a.locked.id, "again", a.further())
	}
	return out, err
}

// isUnpublished distinguishes a head that moved locally but could not be published from a head that did not
// move.
func isUnpublished(moved error) (unpublished, err error) {
	if errors.As(moved, new(*heads.UnpublishedError)) {
		return moved, nil
	}
	return nil, moved
}

// patience is the time that a step has left after a signal or its timeout once its agent has finished.
const patience = 2 * time.Second

// finishing returns the context for the work that remains after an agent has finished. This work takes
// milliseconds, so signals and the step's timeout don't stop it at once. It is bounded by [patience], because
// another process may hold a lock.
func (a *attempt) finishing(ctx context.Context) (context.Context, context.CancelCauseFunc) {
	finishing, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	context.AfterFunc(ctx, func() {
		after(finishing, patience, func() { cancel(context.Cause(ctx)) })
	})
	if total := a.cmd.Timeout; total > 0 {
		left := max(total-a.reader.Env.Now().Sub(a.info.Started), 0) + patience
		late := fault.New(protocol.CodeTimeout, "the step exceeded its timeout of %s", total)
		after(finishing, left, func() { cancel(late) })
	}
	return finishing, cancel
}

// after calls do after wait, unless ctx ends first.
func after(ctx context.Context, wait time.Duration, do func()) {
	timer := time.AfterFunc(wait, do)
	context.AfterFunc(ctx, func() { timer.Stop() })
}

// unmoved returns the error for a step that was made although the head could not be moved to it.
func (a *attempt) unmoved(err error) error {
	if !errors.Is(err, durable.ErrLocked) {
		return err
	}
	return fault.Of(fmt.Errorf("%q has finished, but updating the head of thread %s failed: %w", a.task.role,
		a.locked.id, err)).Because("head-not-moved", "thread", a.locked.id, "again", a.further())
}

// flush makes a step durable before anything durable refers to it. Agents that flush their nodes set a flag
// in the result; all that use our packages and `uwf step put` do. Flushing twice costs 1 to 2 ms for a small
// step and 17 ms for one with 50 turns. Other agents are not trusted to have flushed their nodes.
func (a *attempt) flush(ctx context.Context, got verify.Accepted) error {
	if got.Durable {
		return nil
	}
	return a.reader.Store.Commit(ctx, got.Nodes...)
}

// arrive returns the thread's state at its head, and archives the thread if it has ended. If no edge matches
// at the head, the step itself has not failed: the output describes the problem.
func (e *Engine) arrive(ctx context.Context, h *lockedThread) (protocol.StepOutput, error) {
	pos, err := e.Reader.Position(ctx, h.id, h.head)
	if err != nil {
		return pos.Damaged(h.head, err), nil
	}
	if pos.Problem == nil && pos.Next.Kind == moderator.End {
		return e.archive(ctx, h, pos)
	}
	return pos.Output(), nil
}

// archive archives a thread that has reached $END or $FAIL.
func (e *Engine) archive(ctx context.Context, h *lockedThread, pos *status.Position) (protocol.StepOutput, error) {
	out := pos.Output()
	ended := heads.Ended{
		Thread: h.id, Workflow: pos.Thread.Start.Workflow, Head: h.head, Status: out.Status, CompletedAt: e.nowMs(),
	}
	if err := e.Reader.Heads.Archive(ctx, ended); err != nil {
		return out, fmt.Errorf("archive thread %s: %w", h.id, err)
	}
	h.ended = &ended
	end := Event{Kind: ThreadEnded, Step: StepInfo{Thread: h.id}, Workflow: pos.Workflow.Name}
	if h.inStep {
		h.farewell = &end
	} else {
		e.report(end)
	}
	out.Done = true
	e.Files().RemoveUnused(ctx, worktree.Ended{ID: h.id, Head: h.head, Workspace: h.facts.Workspace, Locked: h.kept.Locked()})
	return out, nil
}

// task describes the next step of a thread, regardless of who makes it.
type task struct {
	role       string
	prompt     string
	promptHash protocol.Hash     // hash of the prompt's text node
	command    []string          // of a command role; nil for other roles, or if only the history has it
	env        map[string]string // the command's variables
	cwd        string            // location as configured, or the directory that [Engine.Workplace] chose
	limitBase  int
	resumes    bool // the step answers a suspension or reopens a completed thread
	replaces   bool // the step replaces the head
	// For a retried step, putBack holds the files from before it, which the agent starts with, and known the
	// files after it. If both are "", the agent starts with the current files.
	putBack, known protocol.Tree
	keepFiles      bool
	kept           *worktree.Checkout // work tree with the earlier files already restored; nil if not restored
}

// graphTask converts the decision to run a role into a task.
func (e *Engine) graphTask(ctx context.Context, p *status.Position, d moderator.Decision) (task, error) {
	t := task{role: d.Role, prompt: d.Prompt, command: d.Command, env: d.Env, cwd: d.Location, limitBase: p.LimitBase()}
	var err error
	t.promptHash, err = e.Reader.Batch().Add(ctx, protocol.Text(t.prompt))
	return t, err
}

// matches reports whether a run has exactly this task.
func (t task) matches(r rundir.Record) bool {
	return r.Role == t.role && r.PromptHash == t.promptHash && r.LimitBase == t.limitBase &&
		r.Resumes == t.resumes && r.Replaces == t.replaces
}

// own is the content of a step that the engine makes itself, without an agent. It passes the same checks as
// an agent's result.
type own struct {
	agent  string
	output extract.Output
	by     protocol.ExtractedBy
	detail protocol.Detail // its turns are in the same batch
	answer string          // the only turn if detail has none
	// Results and cost of the joined children; only set for a join.
	children []protocol.ChildEnded
	usage    *protocol.Usage
	// Only set if the step records a failure.
	failure *protocol.StepFailure
	ended   int64 // Unix milliseconds; 0 means now
}

// submit makes the attempt's step durable and leaves its result in the run directory. If this process is
// killed before the head has moved, the next one adopts the result. The caller must hold
// [status.Reader.LockStore].
func (a *attempt) submit(ctx context.Context, b *cas.Batch, o own) (protocol.Result, error) {
	nothing := 0.0 // no model was called, so the cost is known to be 0
	ended := max(a.record.StartedAt, cmp.Or(o.ended, a.e.nowMs()))
	usage := &protocol.Usage{CostUSD: &nothing, DurationMs: ended - a.record.StartedAt}
	if len(o.children) > 0 {
		usage = o.usage
	}
	return step.Submit(ctx, b, a.pos.Thread, step.Submission{
		Role: a.task.role, Type: a.pos.Workflow.Roles[a.task.role].Frontmatter,
		Output: o.output, ExtractedBy: o.by, Agent: o.agent, Detail: o.detail, Answer: o.answer,
		EdgePrompt: a.task.prompt, Cwd: a.task.cwd, RunDir: a.dir.Path,
		StartedAtMs: a.record.StartedAt, CompletedAtMs: ended, LimitBase: a.task.limitBase,
		Usage: usage, Children: o.children, Failure: o.failure,
		Snapshot: cmp.Or(a.kept.SnapshotSpec(), a.record.Snapshot), Files: a.locked.elsewhere.Tree, Environ: a.reader.Env.Environ,
		Warn: a.e.warn,
	})
}

// judge returns the schema that the role's output is checked against.
func (a *attempt) judge(ctx context.Context, b *cas.Batch) (extract.Role, error) {
	schema := a.pos.Workflow.Roles[a.task.role].Frontmatter
	value, err := cas.Schema(ctx, a.reader.Nodes(), schema)
	if err != nil {
		return extract.Role{}, err
	}
	compiled, err := b.Compiled(ctx, schema)
	return extract.Role{Schema: value, Compiled: compiled}, err
}

// Workplace returns the directory in which a role of a thread works; see [cwd.Chooser]. Errors are
// *protocol.Error.
func (e *Engine) Workplace(ctx context.Context, role, started, location string) (string, error) {
	return cwd.Chooser{Env: e.Reader.Env, Dirs: e.Reader.Dirs, Config: e.Reader.Config}.Workplace(ctx, role, started,
		location)
}

// workplace returns the directory for this attempt. If the thread's own directory is gone, the error's hint
// shows how to work in another one.
func (a *attempt) workplace(ctx context.Context) (string, error) {
	dir, err := a.e.Workplace(ctx, a.task.role, a.pos.Dir(), a.task.cwd)
	if err == nil || !errors.Is(err, fs.ErrNotExist) {
		return dir, err
	}
	if _, gone := cwd.Real(a.pos.Dir()); gone != nil {
		if w := a.locked.facts.Workspace; w != nil && w.Mode == worktree.InWorktree {
			return "", fault.Of(err).Because("worktree-gone", "head", string(a.locked.head))
		}
		return "", fault.Of(err).Because("directory-gone", "thread", a.locked.id, "again", a.again())
	}
	return dir, err
}
