// Package agentproc runs an agent as a child process and reads its result. The agent's stdout and stderr go
// to files in the run directory. So the agent can finish even if this process is killed, and output of any
// length costs no memory.
//
//   - follow.go: turns that the agent announces on stdout while it runs, and the output of plain programs;
//   - result.go: the result at the end of stdout, and the end of stderr, cleaned for display;
//   - errors.go: the ways in which an agent fails.
package agentproc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/durable"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/runfiles"
)

// DefaultGrace is the time an agent gets to stop when asked.
const DefaultGrace = 5 * time.Second

// Invocation is one run of an agent.
type Invocation struct {
	Command string // a bare name is looked up in Env's PATH; other relative paths start at Dir
	Args    []string
	Dir     string
	Env     []string
	RunDir  string        // directory for the new files of stdout and stderr
	Lock    *durable.Held // inherited by the agent, which counts as alive while this is held
	Timeout time.Duration // 0 means none
	Grace   time.Duration // 0 means DefaultGrace
	// Started, if not nil, is called with the agent's process ID once it runs. If it fails, the agent is
	// stopped and Run returns its error.
	Started func(pid int) error
	// The sandbox's settings depend on the workflow, the role and the agent's alias ("" for a command).
	Workflow, Role, Alias string
	// Plain means that the program is not an agent. Its output goes to the output file and is not parsed, and
	// any exit status is an answer.
	Plain bool
	// Box, Init and Inherit are as in [proc.Command].
	Box     *proc.Box
	Init    bool
	Inherit []*os.File
	// Apart sends a plain program's stderr to a separate file.
	Apart bool
	// Printed, if not nil, is called repeatedly with the last line that a plain program has printed.
	Printed func(line string)
	// MaxPrinted is the maximum output of a plain program in bytes; 0 means 512 MiB.
	MaxPrinted int64
	// OnTurn, if not nil, is called for each announced turn, finished or in progress, on the goroutine of Run.
	OnTurn func(protocol.TurnLine)
}

// Outcome describes how an agent ended.
type Outcome struct {
	Result   protocol.Result
	ExitCode int    // -1 if a signal ended it
	Signal   string // such as "killed"; "" if it exited
	Stderr   string // the end of stderr, cleaned
	// Contained means that none of the agent's processes outlives it. The caller sets this and the following fields.
	Contained bool
	// Held describes what the sandbox denied the agent; "" if nothing.
	Held string
	// Removed waits until the sandbox's temporary files are removed; nil if there is no sandbox.
	Removed func()
}

// Run runs an agent until it ends. If ctx ends or the timeout expires, it stops the agent's whole process
// group. Errors are [*NotFoundError], [*ExitError], [*ResultError], [*TimeoutError], [*FloodError], the cause
// of ctx, or the error of Started. The outcome contains what is known even if there is an error.
func Run(ctx context.Context, inv Invocation) (Outcome, error) {
	path, err := inv.Command, error(nil)
	if inv.Box == nil { // otherwise it is the path of uwf-box
		path, err = proc.LookPath(inv.Command, inv.Dir, inv.Env) // in the agent's PATH, which .env may set
	}
	if err != nil {
		return Outcome{}, &NotFoundError{Command: inv.Command, Err: err}
	}
	child, err := start(path, inv)
	if err != nil {
		return Outcome{}, err
	}
	status, err := supervise(ctx, child, inv)
	out := Outcome{ExitCode: status.Code, Signal: status.Signal, Stderr: stderrTail(inv.RunDir)}
	if err != nil || inv.Plain {
		return out, err
	}
	result, resultErr := ReadResult(inv.RunDir)
	out.Result = result
	reportsError := resultErr == nil && result.StepHash == ""
	if status.Code != 0 || reportsError {
		return out, &ExitError{Outcome: out, Command: inv.Command}
	}
	return out, resultErr
}

// start starts the agent with new output files. A descendant of an earlier agent that still writes uses the
// files of its own run.
func start(path string, inv Invocation) (*proc.Child, error) {
	name := runfiles.StdoutFile
	if inv.Plain {
		name = runfiles.OutputFile
	}
	stdout, err := newFile(inv, name)
	if err != nil {
		return nil, err
	}
	defer stdout.Close()
	stderr := stdout
	if !inv.Plain || inv.Apart {
		if stderr, err = newFile(inv, runfiles.StderrFile); err != nil {
			return nil, err
		}
		defer stderr.Close()
	}
	cmd := proc.Command{
		Path: path, Args: inv.Args, Dir: inv.Dir, Env: inv.Env,
		Stdout: stdout, Stderr: stderr,
		// A new session keeps the agent from prompting on our terminal.
		Session: true, Init: inv.Init, Box: inv.Box,
	}
	if inv.Lock != nil {
		cmd.Inherit = []*os.File{inv.Lock.File()}
	}
	cmd.Inherit = append(cmd.Inherit, inv.Inherit...)
	child, err := proc.Start(cmd)
	if err != nil {
		return nil, &NotFoundError{Command: inv.Command, Err: err}
	}
	return child, nil
}

// newFile creates an empty file in the run directory for the agent, in place of another one.
func newFile(inv Invocation, name string) (f *os.File, err error) {
	path := filepath.Join(inv.RunDir, name)
	const tries = 2
	for range tries {
		if f, err = os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600); !errors.Is(err, os.ErrExist) {
			break
		}
		_ = os.Remove(path) // otherwise the next try reports it
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the agent's %s: %w", name, err)
	}
	return f, nil
}

// supervise waits until the agent has ended, and reports turns in the meantime.
func supervise(ctx context.Context, child *proc.Child, inv Invocation) (proc.Status, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	if inv.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeoutCause(ctx, inv.Timeout, &TimeoutError{After: inv.Timeout, Plain: inv.Plain})
		defer stop()
	}
	if inv.Started != nil {
		if err := inv.Started(child.Pid()); err != nil {
			cancel(err)
		}
	}
	grace := inv.Grace
	if grace == 0 {
		grace = DefaultGrace
	}
	if inv.OnTurn == nil && !inv.Plain {
		return child.Wait(ctx, grace)
	}
	var (
		status proc.Status
		err    error
		ended  = make(chan struct{})
	)
	go func() {
		defer close(ended)
		status, err = child.Wait(ctx, grace)
	}()
	if inv.Plain {
		inv.watchPlain(ended, cancel)
	} else {
		follow(inv.RunDir, ended, inv.OnTurn)
	}
	<-ended
	return status, err
}
