package view

import (
	"cmp"
	"context"
	"strings"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/sorting"
)

// Inbox lists the threads that wait for a person, longest wait first. It calls damaged for each unreadable
// entry.
func Inbox(ctx context.Context, e *engine.Engine, damaged func(error)) []protocol.InboxItem {
	inbox := []protocol.InboxItem{}
	known := SavedSummaries(e)
	waiting, _, _, _ := Attention(ctx, e, known, 0, damaged)
	known.Save(e)
	for _, w := range waiting {
		inbox = append(inbox, w.InboxItem)
	}
	return inbox
}

// Waiting is a thread of the inbox with its state.
type Waiting struct {
	protocol.InboxItem
	At      protocol.StepOutput
	Actions []protocol.Action
}

// Attention returns the inbox, and the threads that are running or have running children, newest first. It
// reads each thread once. If most is not 0, it chooses threads by their summaries and reads only the first most
// of each kind; more and moreAtWork are how many others there are.
func Attention(ctx context.Context, e *engine.Engine, known *Summaries, most int,
	damaged func(error)) (waiting []Waiting, atWork []status.ThreadInfo, more, moreAtWork int) {
	f := Filter{Known: known, Statuses: []protocol.Status{
		protocol.StatusSuspended, protocol.StatusError, protocol.StatusCorrupt, protocol.StatusRunning,
		protocol.StatusWaitingForChildren,
		protocol.StatusRateLimited,
	}}
	listed := Listed(ctx, e.Reader.Heads, f, damaged)
	if most > 0 {
		listed, more, moreAtWork = known.first(ctx, e, listed, most)
	}
	for at := range threadInfos(ctx, e, listed, f, false) {
		busy := at.Status == protocol.StatusRunning || at.Status == protocol.StatusWaitingForChildren
		if busy {
			atWork = append(atWork, at)
		}
		asks := asking(at.At)
		if busy || len(asks) > 1 {
			for _, c := range asks {
				if w, ok := ofChild(ctx, e, at, c); ok {
					waiting = append(waiting, w)
				}
			}
		} else if can := at.Actions(); len(can) > 0 {
			waiting = append(waiting, Waiting{itemOf(at.At, at.Since, at.Title, at.Totals, can), at.At, can})
		}
	}
	sorting.Stable(waiting, func(a, b Waiting) int { return cmp.Compare(ms(a.Since), ms(b.Since)) })
	return waiting, atWork, more, moreAtWork
}

// asking returns the children that wait for a person.
func asking(at protocol.StepOutput) (asks []protocol.ChildOutput) {
	for _, c := range at.Children {
		if c.Status == protocol.StatusSuspended {
			asks = append(asks, c)
		}
	}
	return asks
}

// ofChild returns a child's question as an inbox item.
func ofChild(ctx context.Context, e *engine.Engine, of status.ThreadInfo, c protocol.ChildOutput) (Waiting, bool) {
	at, err := e.Reader.Show(ctx, c.Thread)
	if err != nil || at.Status != protocol.StatusSuspended {
		return Waiting{}, false
	}
	can, err := e.Reader.Actions(ctx, c.Thread)
	for _, a := range can {
		for i, arg := range a.Command {
			if arg == c.Thread {
				a.Command[i] = of.Thread + "/" + c.Key
			}
		}
	}
	title := of.Title + " · " + cmp.Or(c.Label, c.Key)
	return Waiting{itemOf(at, e.Reader.Since(ctx, at), title, nil, can), at, can}, err == nil && len(can) > 0
}

func ms(at *int64) int64 {
	if at == nil {
		return 0
	}
	return *at
}

// CommandLine returns the command for the first of some actions, or "".
func CommandLine(actions []protocol.Action) string {
	if len(actions) == 0 {
		return ""
	}
	words := []string{"uwf"}
	for _, arg := range actions[0].Command {
		words = append(words, plaintext.Word(arg))
	}
	return strings.Join(words, " ")
}

// NoticeOf returns the notification for a thread in a state, without ID, time and link.
func NoticeOf(ctx context.Context, e *engine.Engine, event string, at protocol.StepOutput) (protocol.Notice, error) {
	show, err := Thread(ctx, e, at.Thread, false)
	if err != nil {
		return protocol.Notice{}, err
	}
	can, err := e.Reader.Actions(ctx, at.Thread)
	if err != nil {
		return protocol.Notice{}, err
	}
	n := protocol.Notice{Event: event, InboxItem: itemOf(at, e.Reader.Since(ctx, at), show.Title, show.Totals, can)}
	what := map[string]string{
		protocol.NoticeWaiting: "waits: ", protocol.NoticeError: "failed: ",
		protocol.NoticeFailed: "failed", protocol.NoticeCompleted: "completed", protocol.NoticeLimit: "stopped at a limit: ",
	}[event]
	if n.Question != nil && event == protocol.NoticeWaiting {
		what = n.Question.Role + " asks: " + n.Question.Text
	} else if !at.Status.AtEnd() {
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

// itemOf returns the inbox item of a thread.
func itemOf(at protocol.StepOutput, since *int64, title string, totals *protocol.Totals,
	can []protocol.Action) protocol.InboxItem {
	item := protocol.InboxItem{
		Thread: at.Thread, Title: title, Workflow: at.WorkflowName, Status: at.Status, Question: at.Question,
		Since: since, Command: CommandLine(can), Totals: totals,
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
