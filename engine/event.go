package engine

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// EventKind says what an [Event] reports. The values are stable: scripts read them.
type EventKind string

// The kinds of events.
const (
	StepStarted  EventKind = "step-started"
	AgentStarted EventKind = "agent-started" // its process runs, or its thread waits for it in an open run
	Turn         EventKind = "turn"          // a message of the agent's conversation
	Writing      EventKind = "writing"       // a turn that is not finished; more of it, or all, follows
	StepEnded    EventKind = "step-ended"
	// Children reports where the children that play a role together stand: all of them before
	// work on them begins, later those that have come to rest.
	Children     EventKind = "children"
	ThreadEnded  EventKind = "thread-ended"
	ThreadKilled EventKind = "thread-killed"
	Warning      EventKind = "warning"
	// AtRest reports that a thread needs a person, has failed or has ended.
	AtRest EventKind = "at-rest"
)

// Event is something that happens while an engine works on threads.
type Event struct {
	Kind     EventKind
	Step     StepInfo             // of an event about a thread only its Thread is set; of a warning nothing
	Workflow string               // name; "" if it was not read
	Turn     *protocol.Turn       // of Turn and Writing
	Output   *protocol.StepOutput // of StepEnded and AtRest: where the thread stands
	Children []protocol.ChildOutput
	Err      error  // why a step ended without a result
	Text     string // of a warning
	Notice   string // of AtRest: protocol.NoticeWaiting and its like
}

// StepInfo says which step is meant.
type StepInfo struct {
	Thread  string
	Number  int // from 1
	Role    string
	Agent   string // alias or command line, as the user named it
	Program string // alias, or the base name of the agent's program: fit for a log
	Started time.Time
	Ended   time.Time // of a step that is reported later; zero: now
	Path    string    // of a child, from the thread that was asked for; "": that itself
	Label   string    // the path with each key replaced by the item that it stands for; "": there are none
	Adopted bool
	Refused bool // by the agent's provider: the account has reached a limit
	Earlier bool // the agent was chosen for an earlier step, and kept
}

// report calls Events.
func (e *Engine) report(ev Event) {
	if e.Events == nil {
		return
	}
	if e.serial != nil {
		e.serial.Lock()
		defer e.serial.Unlock()
	}
	e.Events(ev)
}

// warn reports a warning.
func (e *Engine) warn(text string) { e.report(Event{Kind: Warning, Text: text}) }

// serialized returns an engine that several goroutines may use: it calls Events and PutBack on one at
// a time.
func (e *Engine) serialized() *Engine {
	if e.serial != nil {
		return e
	}
	with := *e
	with.serial = &sync.Mutex{}
	if e.Events != nil {
		with.Reader.Warn = with.warn
	}
	return &with
}

// started reports that the step has begun.
func (a *attempt) started(agent string, adopted bool) {
	a.describe(agent, adopted)
	a.report(Event{Kind: StepStarted})
}

// describe says which step is meant in what is reported of it.
func (a *attempt) describe(agent string, adopted bool) {
	a.info = StepInfo{
		Thread: a.locked.id, Number: a.pos.Thread.Len() + 1, Role: a.task.role, Agent: agent, Program: a.cmd.Alias,
		Started: a.reader.Env.Now(), Adopted: adopted, Earlier: a.cmd.Earlier, Path: a.e.path, Label: a.e.label,
	}
	if a.info.Program == "" && len(a.cmd.Argv) > 0 {
		a.info.Program = strings.TrimSuffix(filepath.Base(a.cmd.Argv[0]), ".exe")
	}
	a.locked.inStep = true
}

// ended reports how the step has ended.
func (a *attempt) ended(out protocol.StepOutput, err error) {
	a.report(Event{Kind: StepEnded, Output: &out, Err: err})
	if a.locked.inStep = false; a.locked.farewell != nil {
		a.e.report(*a.locked.farewell)
		a.locked.farewell = nil
	}
}

// report is [Engine.report] of an event of this step.
func (a *attempt) report(ev Event) {
	ev.Step, ev.Workflow = a.info, a.pos.Workflow.Name
	a.e.report(ev)
}
