package view

import (
	"cmp"
	"context"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/form"
	"github.com/united-workforce/uwf/util/plaintext"
)

// Inbox lists the threads that cannot go on without a person, those first that have
// waited longest. damaged is told of entries that cannot be read.
func Inbox(ctx context.Context, e *engine.Engine, damaged func(error)) []protocol.InboxItem {
	inbox := []protocol.InboxItem{}
	waiting, _ := Attention(ctx, e, damaged)
	for _, w := range waiting {
		inbox = append(inbox, w.InboxItem)
	}
	return inbox
}

// Waiting is a thread of the inbox, and where it stands.
type Waiting struct {
	protocol.InboxItem
	At protocol.StepOutput
}

// Attention is [Inbox], and the threads that are at work or whose children are, newest
// first. Each thread is read once.
func Attention(ctx context.Context, e *engine.Engine,
	damaged func(error)) (waiting []Waiting, atWork []status.Standing) {
	f := Filter{Statuses: []protocol.Status{
		protocol.StatusSuspended, protocol.StatusError, protocol.StatusCorrupt, protocol.StatusRunning,
		protocol.StatusWaitingForChildren,
		protocol.StatusRateLimited,
	}}
	for at := range standings(ctx, e, Listed(ctx, e.Reader.Heads, f, damaged), f) {
		if at.Status == protocol.StatusRunning || at.Status == protocol.StatusWaitingForChildren {
			atWork = append(atWork, at)
		} else if in := itemOf(at.At, at.Since, at.Title, at.Totals); in.Command != "" {
			waiting = append(waiting, Waiting{InboxItem: in, At: at.At})
		}
	}
	slices.SortStableFunc(waiting, func(a, b Waiting) int { return cmp.Compare(ms(a.Since), ms(b.Since)) })
	return waiting, atWork
}

func ms(at *int64) int64 {
	if at == nil {
		return 0
	}
	return *at
}

// Command is the line that a person types next; "" if there is nothing to do.
func Command(s protocol.StepOutput) string {
	switch s.Status {
	case protocol.StatusSuspended:
		switch {
		case s.Question == nil && s.Error != nil && s.Error.Hint != "": // it has cost what it may
			first, _, _ := strings.Cut(s.Error.Hint, "\n")
			if _, command, explained := strings.Cut(first, ": "); explained {
				return command
			}
			return first
		case s.Question == nil:
			return "uwf thread resume " + s.Thread
		case s.Question.Schema != nil:
			return answerLine(s)
		}
		return "uwf thread resume " + s.Thread + " -p '<answer>'"
	case protocol.StatusRateLimited:
		if s.Error != nil && s.Error.Code == protocol.CodeLimit { // a provider's limit needs no person
			return s.Error.Hint
		}
	case protocol.StatusIdle, protocol.StatusWaitingForChildren:
		return "uwf thread resume " + s.Thread
	case protocol.StatusRunning:
		return "uwf thread wait " + s.Thread
	case protocol.StatusError, protocol.StatusCorrupt:
		return "uwf thread diagnose " + s.Thread
	case protocol.StatusCompleted:
		return "uwf thread read " + s.Thread
	}
	return ""
}

// answerLine is a command that answers a form, with the first choice of each field
// that must be given.
func answerLine(at protocol.StepOutput) string {
	line := "uwf thread answer " + at.Thread
	given := map[string]any{}
	for range 2 { // what a variant needs besides is known once it is chosen
		line = "uwf thread answer " + at.Thread
		for _, f := range form.Fields(at.Question.Schema, given, protocol.StatusKey) {
			value := "…"
			if len(f.Choices) > 0 {
				value, given[f.Name] = f.Choices[0], f.Choices[0]
			}
			if f.Required || len(f.Choices) > 0 {
				line += " --set " + plaintext.Word(f.Name+"="+value)
			}
		}
	}
	return line
}

// NoticeOf is what is told of a thread that stands so; its id, time and link are not in it.
func NoticeOf(ctx context.Context, e *engine.Engine, event string, at protocol.StepOutput) (protocol.Notice, error) {
	show, err := Thread(ctx, e, at.Thread, false)
	if err != nil {
		return protocol.Notice{}, err
	}
	n := protocol.Notice{Event: event, InboxItem: itemOf(at, e.Reader.Since(ctx, at), show.Title, show.Totals)}
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
	case at.SuspendMessage != "":
		item.Reason = string(at.SuspendMessage)
	case at.Error != nil:
		item.Reason = at.Error.Message
	}
	return item
}
