package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	ucli "github.com/united-workforce/uwf/internal/thirdparty/cli"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/plaintext"
)

const defaultLimit = 100

// worked is a thread with a workflow, running or ended.
type worked struct {
	Thread    string `json:"thread"`
	Remote    string `json:"remote"`
	Status    string `json:"status"` // working, waiting or starting; or how it ended: completed, failed, …
	StartedAt int64  `json:"startedAt"`
	Worker    string `json:"worker,omitempty"`
	Tries     int    `json:"tries,omitempty"` // tries of the step in flight, if more than one
	Why       string `json:"why,omitempty"`   // error of the last failed try, or of the workflow
	Kind      string `json:"kind,omitempty"`  // error type of the workflow: uwf.failed and so on (package flow)
	EndedAt   int64  `json:"endedAt,omitempty"`
	Child     bool   `json:"child,omitempty"` // started by another thread's workflow
}

// Statuses of a thread that waits for a person, a time or children, and of one whose workflow has failed. The
// latter is Temporal's term.
const (
	waiting        = "waiting"
	workflowFailed = "failed"
)

// list shows what Temporal knows. The content of threads is at the remote.
func (cmd *command) list(c *ucli.Context, conf config) error {
	if c.Int("limit") < 1 {
		return cmdline.UsageError("--limit must be 1 or more", "--limit 100")
	}
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	query := running
	if c.Bool("all") {
		query = ""
	}
	all, err := listed(c.Context, dialled, conf.Remote, query, c.Int("limit"), func(worked) bool { return true })
	if err != nil {
		return err
	}
	return cmd.print(all, func(out io.Writer) error {
		for _, w := range all {
			line := fmt.Sprintf("%s  %-10s %s", w.Thread, w.Status, w.Worker)
			switch {
			case w.Kind != "":
				line += w.Kind + ": " + w.Why
			case w.Why != "":
				line += fmt.Sprintf("  try %d: %s", w.Tries, w.Why)
			}
			if _, err := fmt.Fprintln(out, strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
		return nil
	})
}

// one returns an item of the list. Text from Temporal is untrusted.
func one(ctx context.Context, dialled client.Client, remote string,
	found *workflow.WorkflowExecutionInfo) (w worked, ours bool, err error) {
	id := found.GetExecution().GetWorkflowId()
	thread, ours := strings.CutPrefix(id, flow.ID(remote, ""))
	if !ours {
		return w, false, nil
	}
	w = worked{Thread: plaintext.Word(thread), Remote: remote, StartedAt: found.GetStartTime().AsTime().UnixMilli(),
		Child: found.GetParentExecution().GetWorkflowId() != ""}
	if found.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		w.Status, w.EndedAt = strings.ToLower(found.GetStatus().String()), found.GetCloseTime().AsTime().UnixMilli()
		if found.GetStatus() == enums.WORKFLOW_EXECUTION_STATUS_FAILED {
			w.Kind, w.Why = whyFailed(ctx, dialled, found)
		}
		return w, true, nil
	}
	w.Status = waiting
	about, err := dialled.DescribeWorkflowExecution(ctx, id, found.GetExecution().GetRunId())
	if err != nil {
		return w, true, err
	}
	for _, a := range about.GetPendingActivities() {
		w.Status = "starting" // no worker has taken it
		if a.GetState() == enums.PENDING_ACTIVITY_STATE_STARTED {
			w.Status, w.Worker = "working", plaintext.Line(a.GetLastWorkerIdentity())
		}
		if a.GetAttempt() > 1 {
			w.Tries, w.Why = int(a.GetAttempt()), plaintext.Short(plaintext.Line(a.GetLastFailure().GetMessage()), maxWhy)
		}
	}
	if about.GetPendingWorkflowTask() != nil && len(about.GetPendingActivities()) == 0 {
		w.Status = "starting"
	}
	return w, true, nil
}

// whyFailed returns the error of a failed workflow.
func whyFailed(ctx context.Context, dialled client.Client, found *workflow.WorkflowExecutionInfo) (kind, why string) {
	err := dialled.GetWorkflow(ctx, found.GetExecution().GetWorkflowId(), found.GetExecution().GetRunId()).Get(ctx, nil)
	if failed, ok := errors.AsType[*temporal.ApplicationError](err); ok {
		return plaintext.Word(failed.Type()), plaintext.Short(plaintext.Line(failed.Message()), maxWhy)
	}
	if err != nil {
		why = plaintext.Short(plaintext.Line(err.Error()), maxWhy)
	}
	return "", why
}

const maxWhy = 200

// quiet returns a logger that discards everything, because commands report errors themselves.
func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
