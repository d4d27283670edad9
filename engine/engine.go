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
//   - invoke.go: the agent's run;
//   - accept.go, package verify: whether what it returned is what was asked for;
//   - advance.go: make it durable, move the head, look at what is next;
//   - session.go: the facts of a thread, read once, and refusal.go: why a request cannot be done;
//   - do.go, move.go: what package internal/decide has decided, and how it is done;
//   - work.go: several steps under one lock of the thread;
//   - fan.go, drive.go, package children: threads that play a role together.
//
// Around it: start.go and fork.go make threads, stop.go ends steps in flight, worker.go hands a
// thread to a process that nobody waits for, and package threadfiles is what people do with a
// thread's files. [Open] puts an engine together for a
// program, package catalog finds workflows, and package view is what there is to show.
//
// The module is v0: names may change with a minor version. docs/embedding.md is how to
// build a program on it.
package engine

import (
	"context"
	"log/slog"
	"time"

	"github.com/united-workforce/uwf/engine/agentproc"
	"github.com/united-workforce/uwf/engine/limits"
	"github.com/united-workforce/uwf/engine/status"
	"github.com/united-workforce/uwf/engine/workspace"
	"github.com/united-workforce/uwf/protocol"
)

// Engine steps threads. Build it as a literal; Progress and Grace may be left out.
type Engine struct {
	// Reader tells where threads stand. If it is ReadOnly, the engine writes nothing and takes no
	// locks, and operations that would change something fail.
	status.Reader
	Given []string // the environment without .env; nil: the same
	// Run runs an invocation of an agent; nil: as a process, [agentproc.Run].
	Run Runner
	// Project is the path of the project's config that Config puts beneath the user's; "": none.
	Project string
	// Loaded is called each time the config has been read, with the path of the project's config.
	Loaded   func(project string, err error)
	Progress Progress    // nil: silent
	Events   func(Event) // told what is done to threads; nil: no diary is kept
	// Log is told how each action was decided; nil: nobody is.
	Log *slog.Logger
	// Rested is called when this engine's work has brought a thread to rest, with the event
	// (protocol.NoticeWaiting and the like) and where the thread stands; nil: not called.
	Rested func(event string, at protocol.StepOutput)
	// Shared: other machines step these threads, too. A step that fails by fault of this machine
	// brings them to no rest.
	Shared bool
	Hold   workspace.Hold // for commands that are of no step; nil: they run as they are
	// PutBack undoes the changes of commands whose agent ended without undoing them, and says
	// which; nil: the next agent does it.
	PutBack func() (said string, err error)
	// Hidden returns the absolute paths that agents in a directory may not read. Snapshots leave
	// out files there that git does not track; nil: there are none.
	Hidden func(c protocol.Config, dir string) []string
	Grace  time.Duration // how long an agent gets to stop when asked; 0: [agentproc.DefaultGrace]

	// began is called when an agent has been started; nil: not called.
	began func()
	// driven is the run that this engine works for, with all children; nil: none.
	driven *driven
	// path leads from the driven thread to the child at work; "": the thread itself.
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
	// Children reports where the children that play a role together stand: all of them before
	// work on them begins, later those that have come to rest.
	Children(of StepInfo, stand []protocol.ChildOutput)
}

// StepInfo says which step is meant.
type StepInfo struct {
	Thread  string
	Number  int // from 1
	Role    string
	Agent   string // alias or command, as the user named it
	Started time.Time
	Ended   time.Time // of a step that is reported later; zero: now
	Path    string    // of a child, from the thread that was asked for; "": that itself
	Label   string    // the path with each key replaced by the item that it stands for; "": there are none
	Adopted bool
	Refused bool // by the agent's provider: the account has reached a limit
	Earlier bool // the agent was chosen for an earlier step, and kept
}

// StepOptions for one step. The zero value works.
type StepOptions struct {
	Agent   string        `json:"agent"`   // --agent: an alias, else a command line
	Fresh   bool          `json:"fresh"`   // do not adopt an interrupted step's result
	Timeout time.Duration `json:"timeout"` // 0: the config's
	// Cwd is where the thread works from now on, absolute; "": where it did.
	Cwd string `json:"cwd,omitempty"`
	// Wake continues a parked thread before its time.
	Wake bool `json:"wake,omitempty"`
	// Agents are aliases or command lines by role; they take precedence over Agent.
	Agents map[string]string `json:"agents,omitempty"`
	// Scenario is the absolute path of a script from which uwf-mock plays all roles, including
	// commands and persons.
	Scenario string `json:"scenario,omitempty"`

	// KeepFiles leaves the files as they are: those from before a step that is made again, and
	// those of a change that was cut off.
	KeepFiles bool `json:"keepFiles,omitempty"`
	// Parallel bounds how many threads of a run are at work at once; 0: twice as many
	// as there are processors.
	Parallel int `json:"parallel,omitempty"`

	earlier map[string]string // agents chosen for steps before, by role or [heads.AllRoles]

	due   bool // only if it is due
	more  bool // another step is to follow
	toEnd bool // and all that come after it
}

// reading returns an engine with another reader.
func (e *Engine) reading(r *status.Reader) *Engine {
	with := *e
	with.Reader = *r
	return &with
}

// Accounts are those that the home's agents use, with their limits.
func (e *Engine) Accounts() limits.Accounts {
	return limits.Accounts{Dir: e.Dirs.Limits(), FS: e.FS, Now: e.Env.Now, Warn: e.warn}
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
