package host

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"github.com/united-workforce/uwf/engine"
	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/eventlog"
	"github.com/united-workforce/uwf/engine/internal/fault"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/plaintext"
)

// diary returns a function that writes events to the log. It ignores errors, since a step must not fail
// because of the log.
func diary(e *engine.Engine, now func() time.Time) func(engine.Event) {
	pid := fmt.Sprintf("%d-%d", now().UnixMilli(), os.Getpid())
	return func(ev engine.Event) {
		entry := eventlog.Entry{
			TS: now().UTC(), Pid: pid, Thread: ev.Step.Thread, Workflow: ev.Workflow, Role: ev.Step.Role,
			Agent: ev.Step.Program,
		}
		switch failed := ev.Err != nil && ev.Output.StepHash == ""; {
		case ev.Kind == engine.StepStarted && ev.Step.Adopted:
			entry.Tag = "step-adopted"
		case ev.Kind == engine.StepEnded && failed:
			entry.Tag = "step-failed"
		case ev.Kind == engine.StepEnded:
			entry.Tag = "step-done"
		case ev.Kind == engine.StepStarted, ev.Kind == engine.ThreadEnded, ev.Kind == engine.ThreadKilled:
			entry.Tag = string(ev.Kind)
		default:
			return
		}
		if ev.Kind != engine.ThreadEnded && ev.Kind != engine.ThreadKilled && entry.Tag != "step-started" {
			entry.Ms = now().Sub(ev.Step.Started).Milliseconds()
		}
		if ev.Err != nil {
			entry.Code = string(fault.Of(ev.Err).Code)
		}
		entry.Msg = eventText(entry, ev.Err)
		_ = eventlog.Append(durable.OS(), e.Reader.Dirs.Logs(), entry)
	}
}

// eventText describes an event. It includes only the first line of an error, and of an agent's error only how
// the agent ended, because the rest may quote the thread.
func eventText(e eventlog.Entry, err error) string {
	words := strings.ReplaceAll(e.Tag, "-", " ")
	if e.Role != "" {
		words += ": " + e.Role
	}
	if err != nil {
		text := fault.Of(err).Message
		if exit := (*agentproc.ExitError)(nil); errors.As(err, &exit) {
			text = exit.Brief()
		}
		first, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
		words += ": " + plaintext.Short(first, 200)
	}
	return plaintext.Line(words)
}

// Decisions returns a logger for the engine's decisions: the facts, the reason and the action.
func Decisions(to io.Writer) *slog.Logger {
	plain := func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == slog.LevelKey {
			return slog.Attr{}
		}
		return a
	}
	return slog.New(slog.NewTextHandler(to, &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: plain}))
}
