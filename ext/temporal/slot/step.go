package slot

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Step implements [flow.Stepper].
func (p *Pool) Step(ctx context.Context, r flow.Request, queue string) (flow.Outcome, error) {
	begun := p.c.Now()
	at, err := p.take(ctx)
	if err != nil {
		return flow.Outcome{}, p.local(ctx, r, err)
	}
	defer at.leave()
	if !r.Routed && len(p.c.Queues) > 0 {
		out, elsewhere, err := at.route(ctx, r, queue)
		if err != nil || elsewhere {
			return out, err
		}
	}
	ran, err := at.work(ctx, Task{Do: DoStep, Thread: r.Thread, Remote: r.Remote, Lease: p.c.Lease, Expect: r.Expect})
	if err != nil {
		return flow.Outcome{}, p.local(ctx, r, err)
	}
	p.log(r, ran, begun)
	if ran.problem.Machine && !ran.made() {
		return flow.Outcome{}, p.unable(r, string(ran.code())+": "+plaintext.Line(ran.problem.Message))
	}
	p.health.well()
	if ran.code() != "" && ran.made() {
		// The agent has finished, but the remote doesn't have its step yet.
		if ran, err = at.publish(ctx, r, ran); err != nil {
			return flow.Outcome{}, err
		}
	}
	if ran.code() == protocol.CodeFailed {
		// The thread may be at its end without being archived. Check the remote; if that fails, another step
		// finds out.
		shown, err := at.work(ctx, Task{Do: DoShow, Thread: r.Thread, Remote: r.Remote})
		if err == nil && shown.code() == "" && shown.out.Done {
			ran = shown
		}
	}
	out, err := p.outcome(r, ran)
	if err == nil {
		p.note(r, out)
	}
	return out, err
}

// local returns the error for a slot that could not be created or a process that could not be run. The
// machine is at fault unless the step was stopped.
func (p *Pool) local(ctx context.Context, r flow.Request, err error) error {
	if ctx.Err() != nil {
		return err
	}
	return p.unable(r, err.Error())
}

// unable returns a step that this machine cannot make. Another worker tries it, or this one later.
func (p *Pool) unable(r flow.Request, reason string) error {
	pause := p.health.unwell(r.Thread, reason)
	if p.c.Log != nil {
		p.c.Log(fmt.Sprintf("returned thread %s to the queue: this machine cannot step it; pausing for %s: %s",
			r.Thread, pause, reason))
	}
	return errors.New("the machine of this worker cannot make the step; its log has the reason")
}

// log logs a step.
func (p *Pool) log(r flow.Request, ran ran, begun time.Time) {
	if p.c.Made == nil || ran.code() == "" && !ran.made() || ran.code() == protocol.CodeHeadMoved {
		return
	}
	out := ran.out
	p.c.Made(Made{
		AtMs: begun.UnixMilli(), Thread: r.Thread, Step: out.StepHash, Role: plaintext.Line(string(out.Role)),
		Agent:  plaintext.Line(out.Agent),
		Status: out.Status, Code: ran.code(), Machine: ran.problem.Machine, TookMs: p.c.Now().Sub(begun).Milliseconds(),
		Usage: out.Usage, Workflow: plaintext.Line(out.WorkflowName),
	})
}

// route reports whether the next role belongs to another queue. To find out, it starts a process that reads
// the thread, which is only needed if queues are configured.
func (a *place) route(ctx context.Context, r flow.Request, queue string) (out flow.Outcome, elsewhere bool, err error) {
	ran, err := a.work(ctx, Task{Do: DoShow, Thread: r.Thread, Remote: r.Remote})
	if err != nil {
		return out, false, err
	}
	if ran.code() != "" || ran.out.Status != protocol.StatusIdle {
		return out, false, nil // the step reports the error, or does nothing
	}
	want := a.pool.queueOf(ran.out.StepOutput)
	if want == queue {
		return out, false, nil
	}
	return flow.Outcome{Head: ran.out.Head, Status: protocol.StatusIdle, Queue: want, Routed: true}, true, nil
}

// queueOf returns the task queue of the next role.
func (p *Pool) queueOf(out protocol.StepOutput) string {
	if out.CurrentRole != "" {
		if queue := p.c.Queues[out.WorkflowName][string(out.CurrentRole)]; queue != "" {
			return queue
		}
	}
	return p.c.Queue
}

// publish pushes a step that could not be published when it was made, because the remote was unreachable. It
// gives up if another client has moved the head.
func (a *place) publish(ctx context.Context, r flow.Request, made ran) (ran, error) {
	const longest = 30 * time.Second
	for wait := time.Second; ; wait = min(2*wait, longest) {
		pushed, err := a.work(ctx, Task{Do: DoPush, Thread: r.Thread, Remote: r.Remote})
		if err != nil {
			return made, err
		}
		switch pushed.code() {
		case "":
			made.problem = Problem{}
			return made, nil
		case protocol.CodeDiverged, protocol.CodeHeadMoved, protocol.CodeNotFound, protocol.CodeGone, protocol.CodeCorrupt,
			protocol.CodeUsage:
			return pushed, nil
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return made, context.Cause(ctx)
		}
	}
}

// outcome returns the result for the workflow. Errors that no other try would avoid end the workflow;
// otherwise a misconfigured worker would retry forever without anyone noticing.
func (p *Pool) outcome(r flow.Request, ran ran) (flow.Outcome, error) {
	switch code := ran.code(); code {
	case "", protocol.CodeSuspended:
	case protocol.CodeHeadMoved, protocol.CodeDiverged:
		// Another client was faster, so continue from the current state.
		return flow.Outcome{Status: protocol.StatusIdle}, nil
	case protocol.CodeAgent:
		return flow.Outcome{}, stuck(r, flow.Failed, "the agent of thread %s failed", r.Thread)
	case protocol.CodeLimit:
		return flow.Outcome{}, stuck(r, flow.Budget, "thread %s has reached a limit", r.Thread)
	case protocol.CodeCorrupt:
		return flow.Outcome{}, stuck(r, flow.Broken, "thread %s cannot continue: %s", r.Thread, code)
	case protocol.CodeNotFound, protocol.CodeGone, protocol.CodeInvalid, protocol.CodeUsage:
		return flow.Outcome{}, stuck(r, flow.Refused, "thread %s was refused: %s; see the worker's log",
			r.Thread, code)
	case protocol.CodeLocked:
		return flow.Outcome{}, errors.New("another worker has the lease")
	default:
		return flow.Outcome{}, fmt.Errorf("the step failed: %s (see the worker's log)", code)
	}
	return p.success(r, ran.out.StepOutput)
}

// stuck returns the error for a thread that cannot continue by itself, including a hint.
func stuck(r flow.Request, kind, format string, args ...any) error {
	return &flow.StuckError{Type: kind, Message: fmt.Sprintf(format, args...) + fmt.Sprintf(
		"; for details: uwf thread show %[1]s --remote %[2]s; to continue: uwf-temporal run --thread %[1]s "+
			"--remote %[2]s",
		r.Thread, r.Remote)}
}

// success returns the outcome of a successful step.
func (p *Pool) success(r flow.Request, out protocol.StepOutput) (flow.Outcome, error) {
	if out.Thread != r.Thread {
		return flow.Outcome{}, errors.New("the process answered for another thread")
	}
	o := flow.Outcome{Head: out.Head, Status: out.Status, Made: out.StepHash != ""}
	switch out.Status {
	case protocol.StatusIdle:
		if len(p.c.Queues) > 0 {
			o.Queue, o.Routed = p.queueOf(out), true
		}
	case protocol.StatusWaitingForChildren:
		o.Parallel = out.Parallel
		for _, c := range out.Children {
			if !c.Status.AtEnd() && c.Status != protocol.StatusCancelled {
				o.Children = append(o.Children, flow.Child{Thread: c.Thread, Status: c.Status})
			}
		}
	case protocol.StatusRateLimited:
		if out.RateLimitedUntil != nil {
			o.Until = *out.RateLimitedUntil
		}
	case protocol.StatusError:
		return flow.Outcome{}, stuck(r, flow.Failed, "thread %s failed", r.Thread)
	case protocol.StatusSuspended, protocol.StatusCompleted, protocol.StatusFailed, protocol.StatusCancelled, protocol.StatusRunning:
	default:
		return flow.Outcome{}, stuck(r, flow.Broken, "thread %s is %q", r.Thread, out.Status)
	}
	return o, nil
}
