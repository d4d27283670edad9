package view

import (
	"context"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/protocol"
)

// NoticeOf is what is told of a thread that stands so; its id, time and link are not in it.
func NoticeOf(ctx context.Context, e *engine.Engine, event string, at protocol.StepOutput) (protocol.Notice, error) {
	show, err := Thread(ctx, e, at.Thread, false)
	if err != nil {
		return protocol.Notice{}, err
	}
	n := protocol.Notice{Event: event, InboxItem: itemOf(at, e.Since(ctx, at), show.Title, show.Totals)}
	what := map[string]string{
		protocol.NoticeWaiting: "waits: ", protocol.NoticeError: "failed: ",
		protocol.NoticeCompleted: "has ended", protocol.NoticeLimit: "stopped at a limit: ",
	}[event]
	if n.Question != nil && event == protocol.NoticeWaiting {
		what = n.Question.Role + " asks: " + n.Question.Text
	} else if event != protocol.NoticeCompleted {
		what += n.Reason
	}
	line, _, more := strings.Cut(strings.TrimSpace(what), "\n")
	const longest = 300
	if runes := []rune(line); len(runes) > longest {
		line, more = string(runes[:longest]), true
	}
	if more {
		line += " …"
	}
	n.Text = n.Title + ": " + line
	return n, nil
}

// itemOf is a thread as the inbox lists it.
func itemOf(at protocol.StepOutput, since *int64, title string, totals *protocol.Totals) protocol.InboxItem {
	item := protocol.InboxItem{
		Thread: at.Thread, Title: title, Workflow: at.WorkflowName, Status: at.Status, Question: at.Question,
		Since: since, Command: Command(at), Totals: totals,
	}
	switch {
	case at.Question != nil:
	case at.SuspendMessage != nil:
		item.Reason = *at.SuspendMessage
	case at.Error != nil:
		item.Reason = at.Error.Message
	}
	return item
}
