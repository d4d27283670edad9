// Package engine runs a thread: it takes the moderator's decision to an agent,
// checks what comes back, and moves the head. It holds no state of its own; all
// of it is in the store, the index and the run directory, so that the next
// process goes on where a killed one stopped (DESIGN.md 6).
package engine

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/index"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/home"
)

// Engine steps threads. Build it as a literal; all fields but Progress are required.
type Engine struct {
	Env   env.Env // with .env
	Dirs  home.Dirs
	FS    durable.FS
	Store cas.Store
	Index *index.Index
	// Config loads config.yaml when it is first needed: a step with --agent and
	// commands that only read work without one.
	Config   func(ctx context.Context) (protocol.Config, error)
	Progress Progress // nil: silent
}

// Progress is told what happens, as it happens, on one goroutine at a time.
type Progress interface {
	StepStarted(StepInfo)
	Turn(StepInfo, protocol.Turn)
	StepEnded(StepInfo, protocol.StepOutput, error)
}

// StepInfo says which step is meant.
type StepInfo struct {
	Thread  string
	Number  int // from 1
	Role    string
	Agent   string // alias or command, as the user named it
	Started time.Time
	Adopted bool
}

// StepOptions for one step. The zero value works.
type StepOptions struct {
	Agent   string        // --agent: an alias, else a command line
	Fresh   bool          // do not adopt an interrupted step's result
	Timeout time.Duration // 0: the config's
}

// StartThread makes a thread of a stored workflow. cwd is absolute and exists.
func (e *Engine) StartThread(ctx context.Context, workflow protocol.Hash, prompt, cwd string) (thread string, err error) {
	panic("unwritten")
}

// Step makes one step of a thread, or adopts the finished result of an
// interrupted one. The output is meaningful also when the error is not nil: it
// is where the thread stands then. Errors are *protocol.Error.
func (e *Engine) Step(ctx context.Context, thread string, o StepOptions) (protocol.StepOutput, error) {
	panic("unwritten")
}

// Resume makes the step that a person's answer leads to.
func (e *Engine) Resume(ctx context.Context, thread, supplement string, o StepOptions) (protocol.StepOutput, error) {
	panic("unwritten")
}

// Show derives where a thread stands, active or ended, without any lock. A
// thread whose nodes are damaged has status corrupt; that is not an error.
func (e *Engine) Show(ctx context.Context, thread string) (protocol.StepOutput, error) {
	panic("unwritten")
}

// Fork makes a thread whose head is an existing start or step node.
func (e *Engine) Fork(ctx context.Context, node protocol.Hash) (thread string, err error) {
	panic("unwritten")
}

// Stop ends a running step; the thread stays active. It reports whether one ran.
func (e *Engine) Stop(ctx context.Context, thread string) (bool, error) { panic("unwritten") }

// Kill is Stop, and archives the thread as cancelled.
func (e *Engine) Kill(ctx context.Context, thread string) error { panic("unwritten") }

// Wait returns when no step of the thread is running.
func (e *Engine) Wait(ctx context.Context, thread string) (protocol.StepOutput, error) {
	panic("unwritten")
}
