package flow

import (
	"context"
	"errors"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Stepper makes one step of a thread of a remote. What is to be tried again, here or
// by another worker, comes as any error; what no other try would change as a [*StuckError].
// queue is the task queue that the request came by.
type Stepper interface {
	Step(ctx context.Context, r Request, queue string) (Outcome, error)
}

// StuckError says that a thread cannot go on by itself.
type StuckError struct {
	Type    string // one of those of a failed workflow
	Message string // it goes through Temporal: ids and commands only
}

// Error implements error.
func (e *StuckError) Error() string { return e.Message }

// Steps is the activity.
type Steps struct{ Stepper Stepper }

// Step makes a step, and says meanwhile that it is at it. The worker beats, not the
// agent: an agent may think as long as its own timeout says.
//
// Only who stops the thread or this worker ends a step. That Temporal has lost sight of
// the worker, because one of them was frozen or the network was gone, does not: what the
// agent has done counts if the remote's head has not moved meanwhile, and the lease keeps
// others from it.
func (s Steps) Step(ctx context.Context, r Request) (Outcome, error) {
	working, stop := context.WithCancelCause(context.WithoutCancel(ctx))
	defer stop(nil)
	defer context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); temporal.IsCanceledError(why) || errors.Is(why, worker.ErrWorkerShutdown) {
			stop(why)
		}
	})()
	beating, silent := context.WithCancel(ctx)
	defer silent()
	go beat(beating)
	out, err := s.Stepper.Step(working, r, activity.GetInfo(ctx).TaskQueue)
	if stuck, ok := errors.AsType[*StuckError](err); ok {
		return Outcome{}, temporal.NewNonRetryableApplicationError(stuck.Message, stuck.Type, nil)
	}
	if err != nil && temporal.IsCanceledError(context.Cause(ctx)) {
		return Outcome{}, ctx.Err()
	}
	return out, err
}

func beat(ctx context.Context) {
	const perSilence = 3
	tick := time.NewTicker(max(activity.GetInfo(ctx).HeartbeatTimeout/perSilence, time.Second/2))
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			activity.RecordHeartbeat(ctx)
		case <-ctx.Done():
			return
		}
	}
}

// Registry is a worker, or a test's.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register tells a worker what there is to do.
func Register(to Registry, s Steps) {
	to.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: Name})
	RegisterSteps(to, s)
}

// RegisterSteps tells a worker that has no workflows: it makes the steps of some roles.
func RegisterSteps(to Registry, s Steps) {
	to.RegisterActivityWithOptions(s.Step, activity.RegisterOptions{Name: StepName})
}
