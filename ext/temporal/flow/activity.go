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

// Stepper makes one step of a thread at a remote. If no other try would help, the error is a [*StuckError];
// after any other error, this or another worker tries again. queue is the task queue of the request.
type Stepper interface {
	Step(ctx context.Context, r Request, queue string) (Outcome, error)
}

// StuckError means that a thread cannot continue by itself.
type StuckError struct {
	Type    string // error type of the failed workflow
	Message string // stored in Temporal, so it contains only IDs and commands
}

func (e *StuckError) Error() string { return e.Message }

// Steps implements the activity.
type Steps struct{ Stepper Stepper }

// Step makes a step and sends heartbeats in the meantime. The worker sends them, not the agent, which has its
// own timeout.
//
// A step only ends early if the thread or this worker is stopped. It continues if Temporal has lost contact
// with the worker, because one of them was frozen or the network was down. The result counts if the remote's
// head has not moved since, and the lease keeps others from moving it.
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

// Registry is a worker, or a test environment.
type Registry interface {
	RegisterWorkflowWithOptions(w any, options workflow.RegisterOptions)
	RegisterActivityWithOptions(a any, options activity.RegisterOptions)
}

// Register registers the workflow and the activity.
func Register(to Registry, s Steps) {
	to.RegisterWorkflowWithOptions(Run, workflow.RegisterOptions{Name: Name})
	RegisterSteps(to, s)
}

// RegisterSteps registers only the activity, for a worker that makes the steps of some roles.
func RegisterSteps(to Registry, s Steps) {
	to.RegisterActivityWithOptions(s.Step, activity.RegisterOptions{Name: StepName})
}
