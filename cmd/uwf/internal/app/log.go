package app

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/united-workforce/uwf/cmd/uwf/internal/term"
	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
)

// logEvents records what an engine does. What cannot be written is lost: a
// step must not fail because of its log.
func (a *App) logEvents(e *engine.Engine) {
	pid := fmt.Sprintf("%d-%d", a.Env.Now().UnixMilli(), os.Getpid())
	e.Events = func(ev engine.Event) {
		entry := eventlog.Entry{
			TS: a.Env.Now().UTC(), Pid: pid, Tag: string(ev.Name), Msg: eventText(ev),
			Thread: ev.Thread, Workflow: ev.Workflow, Role: ev.Role, Agent: ev.Agent, Ms: ev.Took.Milliseconds(),
		}
		if ev.Err != nil {
			entry.Code = string(ev.Err.Code)
		}
		_ = eventlog.Append(durable.OS(), e.Dirs.Logs(), entry)
	}
}

// eventText is an event in words. Of an error only its first line is told, and of
// an agent's only how it ended: the rest may be what was said in the thread.
func eventText(ev engine.Event) string {
	words := strings.ReplaceAll(string(ev.Name), "-", " ")
	if ev.Role != "" {
		words += ": " + ev.Role
	}
	if ev.Err != nil {
		text := ev.Err.Message
		if exit := (*agentproc.ExitError)(nil); errors.As(ev.Err, &exit) {
			text = exit.Brief()
		}
		words += ": " + strings.TrimSuffix(term.FirstLine(text, 200), "…")
	}
	return plaintext.Line(words)
}
