// Package flow is the Temporal workflow that steps one thread of a remote to its end,
// and the activity that makes a step.
//
// The workflow knows no role, no graph and no words: only ids, hashes and statuses go
// through Temporal. What a thread does next is decided by uwf, in the activity, from the
// chain; so a newer uwf or an edited workflow file never breaks a replay, and everything
// that Temporal knows could be lost without losing a thread.
//
// It is safe to run anything here twice. A step is made from an expected head, and the
// remote's head moves by compare-and-swap under a lease: whoever comes second is told
// where the thread stands, and goes on from there.
package flow

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"github.com/united-workforce/uwf/protocol"
)

// Names by which Temporal knows what is here. They are stored in histories and never change.
const (
	Name     = "uwf.thread"  // the workflow
	StepName = "uwf.step"    // the activity
	Changed  = "uwf.changed" // a signal: somebody has moved the thread, or answered it
	idPrefix = "uwf/"        // of a workflow's id
	Queue    = "uwf"         // of tasks, where nothing else is said
)

const (
	perRun = 500 // steps of one run of the workflow: a history stays short
	// silence of a worker after which its step is given to another one. The lease of the
	// thread decides when that one may begin.
	silence = 30 * time.Second
	// longest is how long a step may take. The agents' own timeouts come long before.
	longest = 7 * 24 * time.Hour
	// A thread that waits for a person is looked at again so often, if no signal comes.
	firstLook, lastLook = time.Minute, 30 * time.Minute
)

// Thread is the argument of the workflow: a thread, and where it stood when it was last seen.
type Thread struct {
	Remote string        `json:"remote"` // the name that workers have for it
	Thread string        `json:"thread"`
	Head   protocol.Hash `json:"head,omitempty"`  // "": wherever it stands
	Queue  string        `json:"queue,omitempty"` // whose workers make its next step; "": any
	Steps  int           `json:"steps,omitempty"` // that earlier runs of the workflow made
	Above  []string      `json:"above,omitempty"` // the threads that wait for it, its parent first
	// Silence is after how many seconds without a word from its worker a step is given to
	// another one; 0: 30.
	Silence int `json:"silence,omitempty"`
}

// Ended is the result of the workflow.
type Ended struct {
	Head   protocol.Hash   `json:"head"`
	Status protocol.Status `json:"status"` // completed or cancelled; of a child also suspended
	Steps  int             `json:"steps"`  // that the workflow made
}

// Request asks for one step.
type Request struct {
	Remote string        `json:"remote"`
	Thread string        `json:"thread"`
	Expect protocol.Hash `json:"expect,omitempty"`
	// Routed: a worker has found that the queue of this request is the right one.
	Routed bool     `json:"routed,omitempty"`
	Above  []string `json:"above,omitempty"`
}

// Outcome is where the thread stands after it.
type Outcome struct {
	Head   protocol.Hash   `json:"head"`
	Status protocol.Status `json:"status"`
	// Made: this request has made a step.
	Made bool `json:"made,omitempty"`
	// Queue is whose workers make the next step, and Routed whether that is known.
	Queue    string  `json:"queue,omitempty"`
	Routed   bool    `json:"routed,omitempty"`
	Children []Child `json:"children,omitempty"` // that are not at their end
	Parallel int     `json:"parallel,omitempty"` // so many of them at once; 0: all
	Until    int64   `json:"until,omitempty"`    // ms; it is parked so long
}

// Child is a thread that another one waits for.
type Child struct {
	Thread string          `json:"thread"`
	Status protocol.Status `json:"status"`
}

// ID is the id of the workflow of a thread: there is one at a time.
func ID(remote, thread string) string { return idPrefix + remote + "/" + thread }

// Types of the errors with which a workflow fails. Workers also use them for errors of
// the activity that are not worth another try.
const (
	Failed   = "uwf.failed"   // an agent has failed, and its tries are used up
	Budget   = "uwf.budget"   // a limit of what the run may cost
	Broken   = "uwf.broken"   // it cannot go on as it is: damaged, or not understood
	Refused  = "uwf.refused"  // uwf does not try: the worker's config, a program or the thread is not there or wrong
	Children = "uwf.children" // some children have failed
)

// Run is the workflow.
func Run(ctx workflow.Context, t Thread) (Ended, error) {
	r := &run{Thread: t, changed: workflow.GetSignalChannel(ctx, Changed), look: firstLook,
		asking: map[string]protocol.Hash{}}
	for range perRun {
		out, err := r.step(ctx)
		if err != nil {
			return Ended{}, plain(err)
		}
		r.took(out)
		switch out.Status {
		case protocol.StatusCompleted, protocol.StatusFailed, protocol.StatusCancelled:
			return r.ended(out), nil
		case protocol.StatusSuspended:
			if len(r.Above) > 0 {
				return r.ended(out), nil // its parent asks, once nothing else can go on
			}
			err = r.wait(ctx, r.nextLook())
		case protocol.StatusRateLimited, "parked": // its name in older histories
			err = r.wait(ctx, time.UnixMilli(out.Until).Sub(workflow.Now(ctx)))
		case protocol.StatusWaitingForChildren, "waiting": // its name in older histories
			err = r.children(ctx, out)
		case protocol.StatusIdle, protocol.StatusRunning:
			r.look = firstLook
		default:
			err = temporal.NewNonRetryableApplicationError(fmt.Sprintf("thread %s is %q, which this worker does not know",
				r.Thread.Thread, out.Status), Broken, nil)
		}
		if err != nil {
			return Ended{}, err
		}
		if workflow.GetInfo(ctx).GetContinueAsNewSuggested() {
			break
		}
	}
	return Ended{}, workflow.NewContinueAsNewError(ctx, Name, r.Thread)
}

// run is one run of the workflow.
type run struct {
	Thread
	routed  bool
	changed workflow.ReceiveChannel
	look    time.Duration
	asking  map[string]protocol.Hash // heads of children at which they ask a person
}

func (r *run) ended(out Outcome) Ended { return Ended{out.Head, out.Status, r.Steps} }

func (r *run) took(out Outcome) {
	r.Head, r.Queue, r.routed = out.Head, out.Queue, out.Routed
	if out.Made {
		r.Steps++
	}
}

// step makes one step. What fails for reasons of the machinery is tried again for ever,
// here or elsewhere: the worker, the remote and the network come back. What the agent or
// the thread is to blame for comes as an error that is not retried.
func (r *run) step(ctx workflow.Context) (Outcome, error) {
	ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		TaskQueue:           r.Queue,
		StartToCloseTimeout: longest,
		HeartbeatTimeout:    cmp.Or(time.Duration(r.Silence)*time.Second, silence),
		WaitForCancellation: true,
		RetryPolicy: &temporal.RetryPolicy{InitialInterval: time.Second, BackoffCoefficient: 2,
			MaximumInterval: time.Minute},
	})
	var out Outcome
	err := workflow.ExecuteActivity(ctx, StepName, Request{r.Remote, r.Thread.Thread, r.Head, r.routed,
		r.Above}).Get(ctx, &out)
	return out, err
}

// wait waits for a signal, at most so long.
func (r *run) wait(ctx workflow.Context, most time.Duration) error {
	_, _ = r.changed.ReceiveWithTimeout(ctx, max(most, time.Second), nil)
	for r.changed.ReceiveAsync(nil) {
	}
	return ctx.Err()
}

// nextLook is when a thread that waits for a person is looked at without a signal.
func (r *run) nextLook() time.Duration {
	look := r.look
	r.look = min(2*look, lastLook)
	return look
}

// plain takes what Temporal wraps around the error of an activity away: who looks at a
// failed workflow reads what is wrong first.
func plain(err error) error {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return temporal.NewNonRetryableApplicationError(own.Message(), own.Type(), nil)
	}
	return err
}

// children runs those that are due, each by a workflow of its own, until each of them is
// at its end, waits for a person, or has failed. A person's answer lets those go on that
// have waited for it.
func (r *run) children(ctx workflow.Context, out Outcome) error {
	due := out.Children
	most := out.Parallel
	if most <= 0 {
		most = len(due)
	}
	var aside []Child // wait for a person
	running, over, failed := 0, 0, 0
	done := workflow.NewSelector(ctx)
	done.AddReceive(r.changed, func(c workflow.ReceiveChannel, _ bool) {
		c.Receive(ctx, nil)
		due, aside = append(due, aside...), nil
	})
	for {
		for ; len(due) > 0 && running < most; due = due[1:] {
			child := due[0]
			running++
			done.AddFuture(r.start(ctx, child), func(f workflow.Future) {
				running--
				var ended Ended
				switch err := f.Get(ctx, &ended); {
				case temporal.IsWorkflowExecutionAlreadyStartedError(err), err == nil && ended.Status == protocol.StatusSuspended:
					aside, r.asking[child.Thread] = append(aside, child), ended.Head
				case err != nil:
					failed++
				default:
					over++
				}
			})
		}
		if running == 0 {
			break
		}
		done.Select(ctx)
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if failed > 0 {
		message := fmt.Sprintf("%d of %d children of thread %s have failed; uwf-temporal list --all says which and why; "+
			"once that is fixed, uwf-temporal run --thread %[3]s --remote %[4]s goes on with it",
			failed, len(out.Children), r.Thread.Thread, r.Remote)
		return temporal.NewNonRetryableApplicationError(message, Children, nil)
	}
	if over == 0 { // the parent stands where it stood
		return r.wait(ctx, r.nextLook())
	}
	return nil
}

// start starts the workflow of a child.
func (r *run) start(ctx workflow.Context, c Child) workflow.Future {
	ctx = workflow.WithChildOptions(ctx, workflow.ChildWorkflowOptions{
		WorkflowID:            ID(r.Remote, c.Thread),
		WorkflowIDReusePolicy: enums.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		ParentClosePolicy:     enums.PARENT_CLOSE_POLICY_REQUEST_CANCEL,
		WaitForCancellation:   true,
	})
	return workflow.ExecuteChildWorkflow(ctx, Name, Thread{
		Remote: r.Remote, Thread: c.Thread, Head: r.asking[c.Thread], Above: append([]string{r.Thread.Thread}, r.Above...),
		Silence: r.Silence,
	})
}
