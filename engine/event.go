package engine

import (
	"path/filepath"
	"strings"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Event is something that was done to a thread, for a diary. It holds no prompt
// and no command line.
type Event struct {
	Name     EventName
	Thread   string
	Workflow string // name; "" if it was not read
	Role     string
	Agent    string        // alias, or the name of a program
	Took     time.Duration // 0: it has just begun
	Err      *protocol.Error
}

// EventName is what kind of event it is.
type EventName string

// The events.
const (
	EventStepStarted EventName = "step-started"
	EventStepAdopted EventName = "step-adopted"
	EventStepDone    EventName = "step-done"
	EventStepFailed  EventName = "step-failed"
	EventThreadEnded EventName = "thread-ended"
	EventThreadKill  EventName = "thread-killed"
)

func (e *Engine) tell(ev Event) {
	if e.Events != nil {
		e.Events(ev)
	}
}

// event is one about this try.
func (a *attempt) event(name EventName) Event {
	agent := a.cmd.Alias
	if agent == "" && len(a.cmd.Argv) > 0 {
		agent = strings.TrimSuffix(filepath.Base(a.cmd.Argv[0]), ".exe")
	}
	return Event{
		Name: name, Thread: a.locked.id, Workflow: a.pos.Workflow.Name, Role: a.task.role, Agent: agent,
		Took: a.Env.Now().Sub(a.info.Started),
	}
}
