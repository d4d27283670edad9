// Package engine runs a thread: it takes the moderator's decision to an agent,
// checks what comes back, and moves the head. It holds no state of its own; all
// of it is in the store, the heads and the run directory, so that the next
// process goes on where a killed one stopped.
//
// A step, file by file:
//
//   - lock.go: one process at a time steps a thread;
//   - package status: where the thread stands, who is next, and what it has cost;
//   - package rundir: run.json, the record of the try in flight or the last one;
//   - foreign.go: a thread from elsewhere, and where it may work here;
//   - files.go, package workspace: the files that are kept with a step;
//   - check.go, package casting: which agent plays the role;
//   - adopt.go: the finished work of an interrupted step;
//   - invoke.go: the agent's run;
//   - accept.go, package verify: whether what it returned is what was asked for;
//   - advance.go: make it durable, move the head, look at what is next;
//   - step.go, resume.go, poke.go: the above, in order;
//   - work.go: several steps under one lock of the thread;
//   - fan.go, drive.go, package children: threads that play a role together.
//
// Around it: start.go and fork.go make threads, stop.go ends steps in flight, undo.go takes
// steps back, worker.go hands a thread to a process that nobody waits for, and package
// threadfiles is what people do with a thread's files. [Open] puts an engine together for a
// program, package catalog finds workflows, and package view is what there is to show.
//
// The module is v0: names may change with a minor version. docs/embedding.md is how to
// build a program on it.
package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/protocol"
)

// Engine steps threads. Build it as a literal; Progress and Grace may be left out.
type Engine struct {
	// Reader tells where threads stand. If it is ReadOnly, nothing is written and no lock
	// is taken: what would change something fails.
	status.Reader
	Given []string // the environment without .env; nil: the same
	// Run runs an invocation of an agent; nil: as a process, [agentproc.Run].
	Run Runner
	// Project is the path of the project's config that Config puts beneath the user's; "": none.
	Project string
	// Loaded is told of each time that the config was read, with the path of the project's.
	Loaded   func(project string, err error)
	Progress Progress    // nil: silent
	Events   func(Event) // told what is done to threads; nil: nobody keeps a diary
	// Rested is told when a thread has come to rest by work of this engine: with what of
	// protocol.NoticeWaiting and its like, and where it stands; nil: nobody is.
	Rested func(event string, at protocol.StepOutput)
	// PutBack undoes what commands have changed whose agent has ended without doing so,
	// and says what; nil: the next agent does.
	PutBack func() (said string, err error)
	// Hidden are the places that agents in a directory may not read, absolute: of the files
	// there that git does not track no state is kept; nil: there are none.
	Hidden func(c protocol.Config, dir string) []string
	Grace  time.Duration // that an agent gets to stop when asked; 0: [agentproc.DefaultGrace]

	// began is told when an agent has been started; nil: nobody asks.
	began func()
	// driven is the run that this engine works for, with all children; nil: none.
	driven *driven
	// path leads from the driven thread to the child that is at work; "": it is itself.
	path, label string // see [StepInfo]
	// load reads the config, with that of a project beneath it; nil: Config is all there is.
	load func(ctx context.Context, project string) (protocol.Config, error)
}

// Runner runs an agent to its end, as [agentproc.Run] does.
type Runner func(context.Context, agentproc.Invocation) (agentproc.Outcome, error)

// Progress is told what happens, as it happens, on one goroutine at a time.
type Progress interface {
	StepStarted(StepInfo)
	Turn(StepInfo, protocol.Turn)
	Writing(StepInfo, protocol.Turn) // a turn that is not finished; more of it, or all, follows
	StepEnded(StepInfo, protocol.StepOutput, error)
	// Children says where children stand that play a role together: all of them before they
	// are worked on, later those that have come to rest.
	Children(of StepInfo, stand []protocol.ChildOutput)
}

// StepInfo says which step is meant.
type StepInfo struct {
	Thread  string
	Number  int // from 1
	Role    string
	Agent   string // alias or command, as the user named it
	Started time.Time
	Ended   time.Time // of a step that is told of later; zero: now
	Path    string    // of a child, from the thread that was asked for; "": that itself
	Label   string    // the path with the items that keys stand for in their place; "": there are none
	Adopted bool
}

// StepOptions for one step. The zero value works.
type StepOptions struct {
	Agent   string        `json:"agent"`   // --agent: an alias, else a command line
	Fresh   bool          `json:"fresh"`   // do not adopt an interrupted step's result
	Timeout time.Duration `json:"timeout"` // 0: the config's
	// Cwd is where the thread works from now on, absolute; "": where it did.
	Cwd string `json:"cwd,omitempty"`
	// Wake goes on with a thread that is parked, before its time.
	Wake bool `json:"wake,omitempty"`
	// Agents are, by role, aliases or command lines that go before Agent.
	Agents map[string]string `json:"agents,omitempty"`
	// Scenario is a script, an absolute path, by which uwf-mock plays all roles, also those
	// of commands and people.
	Scenario string `json:"scenario,omitempty"`

	// KeepFiles: a poke leaves the files as they are, instead of putting back those before
	// the step that is made again.
	KeepFiles bool `json:"keepFiles,omitempty"`
	// Parallel bounds how many threads of a run are at work at once; 0: twice as many
	// as there are processors.
	Parallel int `json:"parallel,omitempty"`

	more  bool // another step is to follow
	toEnd bool // and all that come after it
}

// reading returns an engine with another reader.
func (e *Engine) reading(r *status.Reader) *Engine {
	with := *e
	with.Reader = *r
	return &with
}

// mayWrite is an error if the engine is for reading.
func (e *Engine) mayWrite() error {
	if e.ReadOnly {
		return fault.New(protocol.CodeUsage, "this engine is read-only")
	}
	return nil
}

func (e *Engine) grace() time.Duration {
	if e.Grace == 0 {
		return agentproc.DefaultGrace
	}
	return e.Grace
}

func (e *Engine) warn(text string) {
	if e.Warn != nil {
		e.Warn(text)
	}
}

func (e *Engine) nowMs() int64 { return e.Env.Now().UnixMilli() }
