// Package agentproc runs an agent as a child process and reads its result. The
// agent's stdout and stderr go to files in the run directory, so that it
// finishes its work even if this process is killed.
package agentproc

import (
	"context"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
)

// Invocation is one run of an agent.
type Invocation struct {
	Command string // a bare name is looked up on PATH of Env
	Args    []string
	Dir     string
	Env     []string
	RunDir  string        // stdout and stderr are written here
	Lock    *durable.Held // inherited by the agent: it is alive while this is held
	Timeout time.Duration // 0: none
	Started func(pid int) error
	Turn    func(protocol.Hash) // announced turns; nil: not wanted
}

// Outcome is how an agent ended.
type Outcome struct {
	Result   protocol.Result
	ExitCode int
	Signal   string
	Stderr   string // the tail
}

// Run runs an agent to its end. Errors: [*NotFoundError], [*ExitError],
// [*ResultError], [*TimeoutError], or ctx's cause.
func Run(ctx context.Context, inv Invocation) (Outcome, error) { panic("unwritten") }

// ReadResult reads the result from the stdout that a finished agent left in a
// run directory. Errors: [*ResultError].
func ReadResult(runDir string) (protocol.Result, error) { panic("unwritten") }

// NotFoundError: the command is not on PATH or not executable.
type NotFoundError struct {
	Command string
	Err     error
}

// ExitError: the agent ended with a failure.
type ExitError struct {
	Outcome Outcome
	Command string
}

// ResultError: the last line is not a result.
type ResultError struct {
	Line   string // cut
	Reason string
}

// TimeoutError: the agent took too long and was stopped.
type TimeoutError struct{ After time.Duration }

func (e *NotFoundError) Error() string { panic("unwritten") }
func (e *ExitError) Error() string     { panic("unwritten") }
func (e *ResultError) Error() string   { panic("unwritten") }
func (e *TimeoutError) Error() string  { panic("unwritten") }
