// Package flow contains the Temporal workflow that steps one thread of a remote to its end, and the activity
// that makes a step.
//
// The workflow knows no roles, graphs or texts: only IDs, hashes and statuses go through Temporal. The
// activity lets uwf decide from the chain what a thread does next. So a newer uwf or an edited workflow file
// never breaks a replay, and no thread is lost if all data in Temporal is lost.
//
// Everything here is safe to run twice. A step starts from an expected head, and the remote's head moves by
// compare-and-swap under a lease. A second run receives the thread's state and continues from there.
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

// Names used in Temporal. They are stored in histories and must never change.
const (
	Name     = "uwf.thread"  // the workflow
	StepName = "uwf.step"    // the activity
	Changed  = "uwf.changed" // the signal that a thread was moved or answered
	idPrefix = "uwf/"        // prefix of workflow IDs
	Queue    = "uwf"         // default task queue
)

const (
	perRun = 500 // steps per workflow run, to keep histories short
	// silence is the time without heartbeats after which another worker gets the step. The thread's lease
	// determines when that one can start.
	silence = 30 * time.Second
	// longest is the maximum duration of a step. The agents' own timeouts are much shorter.
	longest = 7 * 24 * time.Hour
	// Interval at which a thread that waits for a person is checked without a signal: it starts at firstLook
	// and grows to lastLook.
	firstLook, lastLook = time.Minute, 30 * time.Minute
)

// Thread is the argument of the workflow: a thread and its last known state.
type Thread struct {
	Remote string        `json:"remote"` // the workers' name for it
	Thread string        `json:"thread"`
	Head   protocol.Hash `json:"head,omitempty"`  // expected head; "" accepts any
	Queue  string        `json:"queue,omitempty"` // task queue of the next step; "" means the default
	Steps  int           `json:"steps,omitempty"` // made by earlier runs of the workflow
	Above  []string      `json:"above,omitempty"` // ancestors that wait for it, parent first
	// Silence is the time in seconds without heartbeats after which another worker gets a step; 0 means 30.
	Silence int `json:"silence,omitempty"`
}

// Ended is the result of the workflow.
type Ended struct {
	Head   protocol.Hash   `json:"head"`
	Status protocol.Status `json:"status"` // completed or cancelled; for a child also suspended
	Steps  int             `json:"steps"`  // made by the workflow
}

// Request is a request for one step.
type Request struct {
	Remote string        `json:"remote"`
	Thread string        `json:"thread"`
	Expect protocol.Hash `json:"expect,omitempty"`
	// Routed means that a worker has determined that the queue is correct.
	Routed bool     `json:"routed,omitempty"`
	Above  []string `json:"above,omitempty"`
}

// Outcome is the state of the thread after a step.
type Outcome struct {
	Head   protocol.Hash   `json:"head"`
	Status protocol.Status `json:"status"`
	// Made means that this request has made a step.
	Made bool `json:"made,omitempty"`
	// Queue is the task queue of the next step, and Routed reports whether it is known.
	Queue    string  `json:"queue,omitempty"`
	Routed   bool    `json:"routed,omitempty"`
	Children []Child `json:"children,omitempty"` // children that are not at their end
	Parallel int     `json:"parallel,omitempty"` // maximum concurrent children; 0 means unlimited
	Until    int64   `json:"until,omitempty"`    // when its rate limit resets, Unix milliseconds
}

// Child is a thread that its parent waits for.
type Child struct {
	Thread string          `json:"thread"`
	Status protocol.Status `json:"status"`
}

// ID returns the workflow ID of a thread. Only one workflow with it can run at a time.
func ID(remote, thread string) string { return idPrefix + remote + "/" + thread }

// Error types of failed workflows. Workers also use them for errors of the activity that must not be retried.
const (
	Failed   = "uwf.failed"   // an agent has failed, and its retries are exhausted
	Budget   = "uwf.budget"   // a cost limit is reached
	Broken   = "uwf.broken"   // it cannot continue: damaged or invalid
	Refused  = "uwf.refused"  // uwf refuses to step it: the worker's config, a program or the thread is missing or wrong
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
				return r.ended(out), nil // its parent asks when nothing else can continue
			}
			err = r.wait(ctx, r.nextLook())
		case protocol.StatusRateLimited, "parked": // the second is the name in older histories
			err = r.wait(ctx, time.UnixMilli(out.Until).Sub(workflow.Now(ctx)))
		case protocol.StatusWaitingForChildren, "waiting": // the second is the name in older histories
			err = r.children(ctx, out)
		case protocol.StatusIdle, protocol.StatusRunning:
			r.look = firstLook
		default:
			err = temporal.NewNonRetryableApplicationError(fmt.Sprintf("thread %s has unknown status %q",
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
	asking  map[string]protocol.Hash // heads of children that wait for a person
}

func (r *run) ended(out Outcome) Ended { return Ended{out.Head, out.Status, r.Steps} }

func (r *run) took(out Outcome) {
	r.Head, r.Queue, r.routed = out.Head, out.Queue, out.Routed
	if out.Made {
		r.Steps++
	}
}

// step makes one step. Infrastructure errors are retried forever, on this or another worker, because the
// worker, the remote and the network will return. Errors caused by the agent or the thread are not retried.
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

// wait waits for a signal, at most for the given time.
func (r *run) wait(ctx workflow.Context, most time.Duration) error {
	_, _ = r.changed.ReceiveWithTimeout(ctx, max(most, time.Second), nil)
	for r.changed.ReceiveAsync(nil) {
	}
	return ctx.Err()
}

// nextLook returns the time until a thread that waits for a person is checked again without a signal.
func (r *run) nextLook() time.Duration {
	look := r.look
	r.look = min(2*look, lastLook)
	return look
}

// plain unwraps the error of an activity, so that a user who looks at a failed workflow sees the cause first.
func plain(err error) error {
	if own, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return temporal.NewNonRetryableApplicationError(own.Message(), own.Type(), nil)
	}
	return err
}

// children runs the children that are due, each in its own workflow, until each has ended, waits for a
// person, or has failed. A signal lets children that waited for a person continue.
func (r *run) children(ctx workflow.Context, out Outcome) error {
	due := out.Children
	most := out.Parallel
	if most <= 0 {
		most = len(due)
	}
	var aside []Child // children that wait for a person
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
		message := fmt.Sprintf("%d of %d children of thread %s failed; for details: uwf-temporal list --all; to "+
			"continue: uwf-temporal run --thread %[3]s --remote %[4]s",
			failed, len(out.Children), r.Thread.Thread, r.Remote)
		return temporal.NewNonRetryableApplicationError(message, Children, nil)
	}
	if over == 0 { // the parent's state is unchanged
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
