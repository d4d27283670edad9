package engine

import (
	"context"

	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// Overview tells how many threads stand. It reads each workflow and the config
// once, takes no lock, and never fails as a whole: a thread that cannot be read
// says so in its item. It is for one listing, not for concurrent use.
type Overview struct{ e *Engine }

// Overview returns a new one.
func (e *Engine) Overview() *Overview {
	with := e.configOnce()
	with.workflows = map[protocol.Hash]protocol.Workflow{}
	return &Overview{e: with}
}

// Active is an active thread with its head.
func (o *Overview) Active(ctx context.Context, thread string, head protocol.Hash) protocol.ThreadItem {
	out, err := o.e.showActive(ctx, thread, head)
	item := itemOf(out)
	if err != nil {
		item.Error = err.Error()
	}
	return item
}

// Ended is a thread of the history.
func (o *Overview) Ended(ctx context.Context, e index.Ended) protocol.ThreadItem {
	item := itemOf(o.e.showEnded(ctx, e))
	item.CompletedAt = &e.CompletedAt
	return item
}

func itemOf(out protocol.StepOutput) protocol.ThreadItem {
	item := protocol.ThreadItem{
		Thread: out.Thread, Workflow: out.Workflow, Head: out.Head,
		Status: out.Status, StatusDisplay: string(out.Status), CurrentRole: out.CurrentRole,
	}
	if out.Status == protocol.StatusSuspended {
		item.StatusDisplay += " [suspended]" // the original's words
	}
	if out.WorkflowName != "" {
		item.WorkflowName = &out.WorkflowName
	}
	if at, err := threadid.Time(out.Thread); err == nil {
		ms := at.UnixMilli()
		item.StartedAt = &ms
	}
	if out.Error != nil {
		item.Error = out.Error.Message
	}
	return item
}
