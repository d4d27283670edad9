package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/casting"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/engine/oscommand"
	"github.com/united-workforce/uwf/engine/retry"
	"github.com/united-workforce/uwf/engine/rundir"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/verify"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// attempt is one try at the next step of a thread, under the thread's lock.
type attempt struct {
	*Engine
	locked *lockedThread
	pos    *status.Position
	task   task
	cmd    casting.Command
	dir    rundir.Dir
	record rundir.Record
	info   StepInfo
	more   bool               // another step is to follow
	toEnd  bool               // and all that come after it
	kept   *workspace.Keeping // its files; nil: they are not kept

	failedTry *runfiles.Try // the last one, kept already; nil: none was begun

	runs     int           // of the agent in this visit
	retries  int           // how often it may be run again
	pass     *limits.Pass  // of the last try; nil: the agent was not started
	waiting  *durable.Held // the run in which the visit waits to start an agent; nil: it does not
	reason   string        // why it was not, or why the last try failed
	blocked  blocked       // the agent
	soonest  blocked       // of the agents before it, the one that can play first
	refused  bool          // the last try, by the provider
	repeated int           // how often the agent has repeated what failed
	day      limits.Day    // the limit that the step's cost counts for
	retryAt  time.Time     // when the provider grants more; zero: it names no time
}

func (e *Engine) newAttempt(h *lockedThread, pos *status.Position, t task) *attempt {
	return &attempt{Engine: e, locked: h, pos: pos, task: t, dir: e.RunDir(h.id), pass: &limits.Pass{}}
}

// run runs the agent in the step's directory and keeps the files.
func (a *attempt) run(ctx context.Context) (out protocol.StepOutput, err error) {
	if a.locked.elsewhere.Refused != nil {
		return out, a.locked.elsewhere.Refused
	}
	if a.task.cwd, err = a.workplace(ctx); err != nil {
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
	// Held until the end, so that the run counts as alive while it is judged.
	defer func() { _ = lock.Unlock() }()
	a.started(a.cmd.Name, false)
	defer func() { a.ended(out, err) }()
	return step(lock)
}

// withoutProcess makes a step for which no process is started.
func (a *attempt) withoutProcess(ctx context.Context, submit func() (protocol.Result, error)) (protocol.StepOutput, error) {
	return a.inRun(ctx, func(*durable.Held) (out protocol.StepOutput, err error) {
		release, err := a.HoldStore(ctx)
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

// byProcess starts the program that plays the role, and takes its step.
func (a *attempt) byProcess(ctx context.Context, lock *durable.Held) (protocol.StepOutput, error) {
	ran, err := a.invoke(ctx, lock)
	return a.concluded(ctx, ran, err)
}

// concluded takes the step of a program that has ended.
func (a *attempt) concluded(ctx context.Context, ran agentproc.Outcome, err error) (out protocol.StepOutput, _ error) {
	if a.cmd.Plain != nil {
		if !ran.Contained {
			a.endLeft()
		}
		set := a.Secrets()
		if hidden := oscommand.Hide(a.FS, set, runfiles.Dir(a.dir.Path)); hidden != nil {
			err = errors.Join(err, hidden)
		}
		ran.Stderr = set.Hide(ran.Stderr)
	}
	a.repeated = ran.Result.Repeated
	a.refused, a.retryAt = err == nil && ran.Result.Kind == protocol.FailedRateLimit, time.Time{} // it has suspended its work
	if at := ran.Result.RetryAtMs; at > 0 {
		a.retryAt = time.UnixMilli(at)
	}
	for _, text := range ran.Warnings() {
		a.warn(text)
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
		// A result that may count later is not a failed try. That of an agent that crashed does not
		// count.
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
			a.failedTry = nil // it is final
		}
		return out, a.reject(err)
	}
	return a.advance(ctx, step)
}

// tidy ends the processes that a failed or killed agent left running, and undoes what its
// commands changed: a person who reads about the failure looks at the workspace next.
func (a *attempt) tidy() {
	if a.Env.Get(protocol.EnvStartedFor) != a.dir.Path { // else it would end us
		n, err := proc.KillMarked(protocol.EnvStartedFor + "=" + a.dir.Path)
		if n > 0 {
			a.warn(fmt.Sprintf("processes that the agent had started were ended: %d", n))
		}
		if err != nil {
			a.warn("what the agent has started could not all be ended: " + err.Error())
		}
	}
	a.putBack()
}

// putBack undoes what commands have changed whose agent was killed.
func (a *attempt) putBack() {
	if a.PutBack == nil {
		return
	}
	said, err := a.PutBack()
	if said != "" {
		a.warn("a command whose agent was killed " + said)
	}
	if err != nil {
		a.warn("what a command has changed whose agent was killed could not be put back: " + err.Error() + "; start no git in " + a.task.cwd + " before you have looked at its .git/config and .git/hooks")
	}
}

func (a *attempt) newRecord() rundir.Record {
	return rundir.Record{
		Thread: a.locked.id, Workflow: a.pos.Thread.Start.Workflow, Head: a.locked.head,
		Role: a.task.role, Agent: a.cmd.Name, Command: a.cmd.Written, PromptHash: a.task.promptHash,
		LimitBase: a.task.limitBase, Resumes: a.task.resumes, Replaces: a.task.replaces, KeepFiles: a.task.keepFiles, Intents: true,
		More: a.more, Cwd: a.task.cwd, Engine: os.Getpid(), StartedAt: a.nowMs(), Status: rundir.Starting, Snapshot: a.kept.Told(),
	}
}

// giveUp records why a run led to no step. If an agent was stopped after it had finished its
// work, its record stays unfinished and the next step adopts the result.
func (a *attempt) giveUp(ctx context.Context, ran agentproc.Outcome, err error) error {
	var timeout *agentproc.TimeoutError
	status := rundir.Failed
	switch {
	case a.dir.StopRequested(a.record):
		status = rundir.Stopped
		err = &protocol.Error{
			Code: protocol.CodeTerminated, Message: fmt.Sprintf("thread %s was stopped while %q ran", a.locked.id, a.task.role), Err: err,
			Hints: []string{a.on()},
		}
	case fault.IsSignal(err):
		status = rundir.Stopped
		err = fault.Hinted(fault.Of(err), a.on())
	case errors.As(err, &timeout):
		err = fault.Hinted(fault.Of(err), a.again()+" --timeout "+protocol.Span(2*timeout.After)+" gives it more time")
	default:
		return a.failed(rundir.Failed, a.explain(ctx, ran, err))
	}
	if _, finished := a.dir.Finished(); finished {
		return fault.Hinted(fault.Of(err), "the agent had finished: "+a.further()+" adopts its result")
	}
	return a.failed(status, err)
}

// again is the command that repeats the request. A person's words are not kept when the step
// fails, so they must be given again.
func (a *attempt) again() string {
	switch {
	case a.task.resumes:
		return "uwf thread resume " + a.locked.id + " -p '<answer>'"
	case a.task.replaces:
		return "uwf thread retry " + a.locked.id + " -p '<new instructions>'"
	}
	return a.further()
}

// further is the command that continues as far as this one was meant to go.
func (a *attempt) further() string {
	if a.toEnd {
		return "uwf thread resume " + a.locked.id
	}
	return "uwf thread step " + a.locked.id
}

// on is the command that continues with a stopped step and what follows it.
func (a *attempt) on() string {
	if a.task.resumes || a.task.replaces {
		return a.again()
	}
	return "uwf thread resume " + a.locked.id
}

// unable records that no agent could even be started, so that the reason can be shown later: a
// background worker has nobody to tell.
func (a *attempt) unable(err error) error {
	if a.dir.Clear() != nil {
		return err
	}
	a.record = a.newRecord()
	return a.failed(rundir.Failed, err)
}

// failed writes the final record of a run. Should that fail as well, the first error matters
// more: the record stays unfinished, and the next step judges again what the agent left.
func (a *attempt) failed(status rundir.Status, err error) error {
	c := a.hidden(fault.Of(err))
	a.record.Status = status
	a.record.Error = &rundir.Error{Code: c.Code, Message: a.Secrets().Hide(c.Message)}
	_ = a.dir.Write(a.record)
	return c
}

// started and ended tell the progress, if anyone listens.
func (a *attempt) started(agent string, adopted bool) {
	a.info = StepInfo{
		Thread: a.locked.id, Number: a.pos.Thread.Len() + 1, Role: a.task.role,
		Agent: agent, Started: a.Env.Now(), Adopted: adopted, Earlier: a.cmd.Earlier, Path: a.path, Label: a.label,
	}
	begun := a.event(EventStepStarted)
	if begun.Took = 0; adopted {
		begun.Name = EventStepAdopted
	}
	a.tell(begun)
	a.locked.inStep = true
	if a.Progress != nil {
		a.Progress.StepStarted(a.info)
	}
}

func (a *attempt) ended(out protocol.StepOutput, err error) {
	ended := a.event(EventStepDone)
	if err != nil && out.StepHash == nil {
		ended.Name = EventStepFailed
	}
	if err != nil {
		ended.Err = fault.Of(err)
	}
	a.tell(ended)
	if a.locked.inStep = false; a.locked.farewell != nil {
		a.tell(*a.locked.farewell)
		a.locked.farewell = nil
	}
	if a.Progress != nil {
		a.Progress.StepEnded(a.info, out, err)
	}
}

// hidden removes secrets from an error's message, which quotes what programs print.
func (e *Engine) hidden(err *protocol.Error) *protocol.Error {
	text := e.Secrets().Hide(err.Message)
	if text == err.Message {
		return err
	}
	return &protocol.Error{Code: err.Code, Message: text, Hints: err.Hints, Err: err}
}
