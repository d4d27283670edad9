package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	ucli "github.com/urfave/cli/v2"
	"go.temporal.io/api/enums/v1"
	"go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/log"

	"github.com/united-workforce/uwf/ext/temporal/flow"
	"github.com/united-workforce/uwf/util/plaintext"
)

const defaultLimit = 100

// worked is a thread that is worked on, or was.
type worked struct {
	Thread    string `json:"thread"`
	Remote    string `json:"remote"`
	Status    string `json:"status"` // working, waiting or starting; how it ended: completed, failed, …
	StartedAt int64  `json:"startedAt"`
	Worker    string `json:"worker,omitempty"`
	Tries     int    `json:"tries,omitempty"` // of the step in flight, if more than one
	Why       string `json:"why,omitempty"`   // of the last try that failed
}

// list shows what Temporal knows. What a thread has said and made is at the remote.
func (cmd *command) list(c *ucli.Context, conf config) error {
	dialled, err := cmd.connect(c.Context, conf, identity(), quiet())
	if err != nil {
		return err
	}
	defer dialled.Close()
	query := fmt.Sprintf("WorkflowType = '%s'", flow.Name)
	if !c.Bool("all") {
		query += " AND ExecutionStatus = 'Running'"
	}
	all := []worked{}
	limit := c.Int("limit")
	request := &workflowservice.ListWorkflowExecutionsRequest{Query: query, PageSize: int32(min(limit, defaultLimit))} //nolint:gosec // a page
	for len(all) < limit {
		page, err := dialled.ListWorkflow(c.Context, request)
		if err != nil {
			return err
		}
		for _, found := range page.Executions {
			w, ours, err := one(c.Context, dialled, conf.Remote, found)
			if err != nil {
				return err
			}
			if ours && len(all) < limit {
				all = append(all, w)
			}
		}
		if request.NextPageToken = page.NextPageToken; len(request.NextPageToken) == 0 {
			break
		}
	}
	return cmd.print(all, func(out io.Writer) error {
		for _, w := range all {
			line := fmt.Sprintf("%s  %-10s %s", w.Thread, w.Status, w.Worker)
			if w.Why != "" {
				line += fmt.Sprintf("  try %d: %s", w.Tries, w.Why)
			}
			if _, err := fmt.Fprintln(out, strings.TrimRight(line, " ")); err != nil {
				return err
			}
		}
		return nil
	})
}

// one is a line of the list. What others have written into Temporal is text of strangers.
func one(ctx context.Context, dialled client.Client, remote string, found *workflow.WorkflowExecutionInfo) (w worked, ours bool, err error) {
	id := found.GetExecution().GetWorkflowId()
	thread, ours := strings.CutPrefix(id, flow.ID(remote, ""))
	if !ours {
		return w, false, nil
	}
	w = worked{Thread: plaintext.Word(thread), Remote: remote, StartedAt: found.GetStartTime().AsTime().UnixMilli()}
	if found.GetStatus() != enums.WORKFLOW_EXECUTION_STATUS_RUNNING {
		w.Status = strings.ToLower(found.GetStatus().String())
		return w, true, nil
	}
	w.Status = "waiting" // for a person, a time or children
	about, err := dialled.DescribeWorkflowExecution(ctx, id, found.GetExecution().GetRunId())
	if err != nil {
		return w, true, err
	}
	for _, a := range about.GetPendingActivities() {
		w.Status = "starting" // no worker has it
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

const maxWhy = 200

// quiet is a logger that says nothing: a command line says itself what is wrong.
func quiet() log.Logger { return log.NewStructuredLogger(slog.New(slog.DiscardHandler)) }
