package engine

import (
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// EventKind is the kind of an [Event]. The values are stable, since scripts read them.
type EventKind string

// Event kinds.
const (
	StepStarted  EventKind = "step-started"
	AgentStarted EventKind = "agent-started" // the agent's process runs, or its thread waits for it in an open run
	Turn         EventKind = "turn"          // a complete message of the agent's conversation
	Writing      EventKind = "writing"       // an incomplete turn; more of it, or all, follows
	StepEnded    EventKind = "step-ended"
	// Children reports the state of the children of a role: all of them before work on them starts, later
	// those that have stopped.
	Children     EventKind = "children"
	ThreadEnded  EventKind = "thread-ended"
	ThreadKilled EventKind = "thread-killed"
	Warning      EventKind = "warning"
	// AtRest reports that a thread needs a person, has failed or has ended.
	AtRest EventKind = "at-rest"
)

// Event is an event of an engine that works on threads.
type Event struct {
	Kind     EventKind
	Step     StepInfo             // only Thread is set in events about a thread; zero in warnings
	Workflow string               // name; "" if unknown
	Turn     *protocol.Turn       // for Turn and Writing
	Output   *protocol.StepOutput // state of the thread, for StepEnded and AtRest
	Children []protocol.ChildOutput
	Err      error  // why a step ended without a result
	Text     string // for Warning
	Notice   string // for AtRest: protocol.NoticeWaiting and the like
}

// StepInfo identifies a step.
type StepInfo struct {
	Thread  string
	Number  int // starts at 1
	Role    string
	Agent   string // alias or command line, as the user gave it
	Program string // alias, or base name of the agent's program; safe to log
	Started time.Time
	Ended   time.Time // for a step that is reported late; zero means now
	Path    string    // path from the driven thread to the child; "" for the thread itself
	Label   string    // the path with each key replaced by its item; "" if there is none
	Adopted bool
	Refused bool // the agent's provider refused: the account has reached a limit
	Earlier bool // the agent was chosen for an earlier step and kept
}

// report calls Events, if set.
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

func (e *Engine) warn(text string) { e.report(Event{Kind: Warning, Text: text}) }

// serialized returns an engine for concurrent use: it never calls Events or PutBack concurrently.
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

// started reports that the step has started.
func (a *attempt) started(agent string, adopted bool) {
	a.describe(agent, adopted)
	a.report(Event{Kind: StepStarted})
}

// describe sets the step information of later events.
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

// ended reports the step's outcome.
func (a *attempt) ended(out protocol.StepOutput, err error) {
	a.report(Event{Kind: StepEnded, Output: &out, Err: err})
	if a.locked.inStep = false; a.locked.farewell != nil {
		a.e.report(*a.locked.farewell)
		a.locked.farewell = nil
	}
}

// report reports an event of this step.
func (a *attempt) report(ev Event) {
	ev.Step, ev.Workflow = a.info, a.pos.Workflow.Name
	a.e.report(ev)
}
