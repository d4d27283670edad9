// Package agentproc runs an agent as a child process and reads its result. The
// agent's stdout and stderr go to files in the run directory, so that it
// finishes its work even if this process is killed, and so that its output
// costs no memory however long it is.
//
//   - follow.go: turns announced on stdout while the agent runs, and what a program prints
//     that is no agent;
//   - result.go: the result at the end of stdout, and the end of stderr, fit to be shown;
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
	"github.com/united-workforce/uwf/util/safeopen"
)

// DefaultGrace is how long an agent that is asked to stop may take.
const DefaultGrace = 5 * time.Second

// Invocation is one run of an agent.
type Invocation struct {
	Command string // a bare name is looked up on PATH of Env; other relative paths begin at Dir
	Args    []string
	Dir     string
	Env     []string
	RunDir  string        // stdout and stderr are written here, to new files
	FS      durable.FS    // nil: the real disk
	Lock    *durable.Held // inherited by the agent: it is alive while this is held
	Timeout time.Duration // 0: none
	Grace   time.Duration // 0: DefaultGrace
	// Started is told the agent's process id as soon as there is one; if it
	// fails, the agent is stopped and Run returns its error. May be nil.
	Started func(pid int) error
	// Whose it is: a role of a workflow, played by an agent of the config; "": by a command.
	Workflow, Role, Alias string
	// Plain: the program is no agent. What it prints goes to the output file and is no
	// result, and every status with which it ends is an answer.
	Plain bool
	// Box, Init and Inherit are as in [proc.Command].
	Box     *proc.Box
	Init    bool
	Inherit []*os.File
	// Apart: what a plain program prints on stderr goes to the file of stderr.
	Apart bool
	// Printed is told the last line that a plain program has printed, again and again.
	// May be nil.
	Printed func(line string)
	// MaxPrinted is how many bytes a plain program may print; 0: 512 MiB.
	MaxPrinted int64
	// Told is called for each turn that is announced, finished or still being
	// written, on the goroutine of Run. Nil: not wanted.
	Told func(protocol.TurnLine)
}

// Outcome is how an agent ended.
type Outcome struct {
	Result   protocol.Result
	ExitCode int    // -1 if a signal ended it
	Signal   string // such as "killed"; "" if it exited
	Stderr   string // the tail, cleaned
	// Contained: nothing outlives it, since it had a pid namespace of its own.
	Contained bool
	// Held is what its sandbox has kept from it, in words for the record; "": nothing.
	Held string
}

// Run runs an agent to its end. When ctx ends, or the time is up, the agent's
// whole process group is stopped. Errors: [*NotFoundError], [*ExitError],
// [*ResultError], [*TimeoutError], [*FloodError], ctx's cause, or what Started returned. The
// outcome is filled as far as it is known also when there is an error.
func Run(ctx context.Context, inv Invocation) (Outcome, error) {
	path, err := locate(inv.Command, inv.Dir, inv.Env)
	if err != nil {
		return Outcome{}, err
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

// start starts the agent with new output files. A descendant of an earlier
// agent that still writes does so to the files of its own run.
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
		// Nothing in the agent can wait at our terminal for an answer.
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

// newFile makes an empty file in the run directory and opens it for the agent.
func newFile(inv Invocation, name string) (*os.File, error) {
	fsys := inv.FS
	if fsys == nil {
		fsys = durable.OS()
	}
	path := filepath.Join(inv.RunDir, name)
	if err := fsys.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("prepare the agent's %s: %w", name, err)
	}
	if err := fsys.Append(path, nil, 0o600, durable.NoFlush); err != nil {
		return nil, fmt.Errorf("prepare the agent's %s: %w", name, err)
	}
	f, err := safeopen.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0, safeopen.NoFollow)
	if err != nil {
		return nil, fmt.Errorf("prepare the agent's %s: %w", name, err)
	}
	return f, nil
}

// supervise waits for the agent's end and reports turns until then.
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
	if inv.Told == nil && !inv.Plain {
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
		follow(inv.RunDir, ended, inv.Told)
	}
	<-ended
	return status, err
}

// locate finds the file of a command on the PATH that the agent will have, which
// is not always this process's: .env may set it.
func locate(command, dir string, environ []string) (string, error) {
	path, err := proc.LookPath(command, dir, environ)
	if err != nil {
		return "", &NotFoundError{Command: command, Err: err}
	}
	return path, nil
}
