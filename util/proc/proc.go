// Package proc starts a child in a process group of its own and ends the whole
// group in bounded time, whatever the child does: ignores signals, is stopped,
// or leaves children behind.
//
// What moves itself into another group on purpose gets away, except on Linux
// from a child with [Command.Session].
package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Command is a child to start. Its streams are files, or ends of pipes from
// [os.Pipe], so that the child outlives its parent and nobody who holds a stream
// can keep Wait waiting.
type Command struct {
	Path   string   // used as it is: PATH is not searched
	Args   []string // without the program's name
	Dir    string
	Env    []string // nil: empty
	Stdin  *os.File // nil: the null device, which is empty
	Stdout *os.File // nil: the null device
	Stderr *os.File // nil: the null device
	// Inherit is passed to the child: from descriptor 3 on, on Windows as
	// inherited handles.
	Inherit []*os.File
	// Session cuts the child off from our terminal too, so that nothing in it
	// can wait for a person (a new session; on Windows no console). On Linux
	// all groups of the session end with it when it is killed or fails.
	Session bool
	// WithParent asks the child to end (SIGTERM) when this process is killed. Only
	// Linux does that.
	WithParent bool
	// Init makes the child, whose program calls [NewInit], the init of a pid namespace for
	// the command that it runs: nothing outlives it. Only Linux has those. Where it refuses
	// them, the child adopts and kills what the command leaves behind.
	Init bool
	// Box makes the child, whose program is uwf-box, run the program of the plan in namespaces.
	// Args, Dir and Env are in the plan then.
	Box        *Box
	namespaces func(*syscall.SysProcAttr)
}

// SignalError is the cause of a context that a signal has ended. [Child.Wait]
// passes the same signal on.
type SignalError struct{ Signal os.Signal }

// Error implements error.
func (e *SignalError) Error() string { return "stopped by signal " + e.Signal.String() }

// Code is the signal's, with the exit status that is usual for it.
func (e *SignalError) Code() protocol.Code {
	switch e.Signal {
	case os.Interrupt:
		return protocol.CodeInterrupted
	case syscall.SIGHUP:
		return protocol.CodeHangup
	}
	return protocol.CodeTerminated
}

// ErrAlive means that processes run on although they were killed: they hang in
// the kernel, or belong to somebody else.
var ErrAlive = errors.New("does not end")

// settle is how long a killed process may take to end.
const settle = 5 * time.Second

// Child is a started process, the leader of its group.
type Child struct {
	cmd     *exec.Cmd
	group   group
	session bool
	release func()                // what keeps it tied to us
	ended   func() (Status, bool) // what an init says of its command; nil: it is none
}

// Start starts the child. Call Wait once, or the child's end goes unseen.
func Start(c Command) (*Child, error) {
	switch {
	case c.Box != nil:
		return startBox(c)
	case c.Init:
		return startInit(c)
	}
	cmd := &exec.Cmd{
		Path: c.Path, Args: append([]string{c.Path}, c.Args...),
		Dir: c.Dir, Env: append([]string{}, c.Env...),
	}
	setStreams(cmd, c)
	start := func(cmd *exec.Cmd, c Command) (group, func(), error) {
		g, err := startInGroup(cmd, c)
		return g, func() {}, err
	}
	if c.WithParent {
		start = startTied
	}
	g, release, err := start(cmd, c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return &Child{cmd: cmd, group: g, session: c.Session, release: release}, nil
}

// setStreams leaves nil what is nil: a nil *os.File would be a reader or writer that is not.
func setStreams(cmd *exec.Cmd, c Command) {
	if c.Stdin != nil {
		cmd.Stdin = c.Stdin
	}
	if c.Stdout != nil {
		cmd.Stdout = c.Stdout
	}
	if c.Stderr != nil {
		cmd.Stderr = c.Stderr
	}
}

// Pid is the child's process id and its group's.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Ask sends a signal to the child's group, as a first word before the context of
// Wait ends. On Windows it is a break, whatever the signal.
func (c *Child) Ask(s os.Signal) error { return c.group.ask(&SignalError{Signal: s}) }

// Status is how a child ended.
type Status struct {
	Code   int    // exit status; -1 if a signal ended it
	Signal string // such as "killed"; "" if it exited
}

// Wait waits for the child. When ctx ends first the group is asked to stop
// (SIGTERM, or the signal of a [*SignalError] cause), killed after grace, and
// Wait returns ctx's cause. When the child has ended by itself, what is left of
// its group is killed at once. [ErrAlive] if even that does not help.
func (c *Child) Wait(ctx context.Context, grace time.Duration) (Status, error) {
	defer c.release()
	defer c.group.close()
	ended := make(chan error, 1)
	go func() { ended <- c.cmd.Wait() }()
	select {
	case err := <-ended:
		status, err := c.status(err)
		return status, errors.Join(err, c.clear(status))
	case <-ctx.Done():
	}
	cause := context.Cause(ctx)
	waitErr, err := c.stop(ended, cause, grace)
	if err != nil {
		return Status{Code: -1}, fmt.Errorf("%w: process %d: %w", cause, c.Pid(), err)
	}
	status, err := c.status(waitErr)
	if err = errors.Join(err, c.clear(Status{Code: -1})); err != nil {
		return status, fmt.Errorf("%w: process %d: %w", cause, c.Pid(), err)
	}
	return status, cause
}

// stop asks the group to stop and waits for all of it, kills what is left after
// grace, and returns how the child's own end was.
func (c *Child) stop(ended <-chan error, cause error, grace time.Duration) (waitErr, err error) {
	if err := c.group.ask(cause); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case waitErr = <-ended:
		_, _ = waitUntil(limit, grace, c.group.gone) // who is left then is killed
		return waitErr, nil
	case <-limit.Done():
	}
	if err := c.group.kill(); err != nil {
		return nil, err
	}
	select {
	case waitErr = <-ended:
		return waitErr, nil
	case <-time.After(settle):
		return nil, ErrAlive
	}
}

// clear kills what the child has left behind. One that ended well has itself
// ended what it had put into other groups; to look for that costs milliseconds.
func (c *Child) clear(s Status) error {
	if c.session && s.Code != 0 {
		if err := c.group.killSession(); err != nil {
			return err
		}
	}
	return c.group.clear()
}

// status turns what package exec says into a Status.
func (c *Child) status(waitErr error) (Status, error) {
	if exit := (*exec.ExitError)(nil); waitErr != nil && !errors.As(waitErr, &exit) {
		return Status{Code: -1}, fmt.Errorf("wait for process %d: %w", c.Pid(), waitErr)
	}
	if c.ended != nil {
		if status, ok := c.ended(); ok {
			return status, nil
		}
	}
	state := c.cmd.ProcessState
	return Status{Code: state.ExitCode(), Signal: endSignal(state)}, nil
}
