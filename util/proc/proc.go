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
	"os/signal"
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
	init    bool                  // it must say so, unless it could not run the command
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

// InitFailed is the exit status of an init that cannot run its command, as shells have it for what cannot be
// run.
const InitFailed = 126

// ErrNoInit means that a program that was to become the init of a command has ended without being one.
var ErrNoInit = errors.New("the program did not become the init of the command")

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
	end := Status{Code: state.ExitCode(), Signal: endSignal(state)}
	if c.init && end.Signal == "" && end.Code != InitFailed {
		return Status{Code: -1}, ErrNoInit
	}
	return end, nil
}

// WithSignals returns a context that ends at the first interrupt, terminate or
// hangup, with a [*SignalError] as its cause. A second signal ends the process at
// once, as if it had not been asked for.
func WithSignals(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(parent)
	signals := make(chan os.Signal, 1)
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) { // as nohup has it
			signal.Notify(signals, s)
		}
	}
	done := make(chan struct{})
	go func() {
		select {
		case s := <-signals:
			signal.Stop(signals)
			cancel(&SignalError{Signal: s})
		case <-done:
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel(nil)
	}
}

// UntilSignal runs a command and returns its exit status. Once a signal has ended
// ctx, the command has as long as patience says to come to its own end; then
// UntilSignal returns without it: some work looks at no context, and whoever has
// typed Ctrl-C waits. That is safe where a kill is, and the process must end then.
func UntilSignal(ctx context.Context, patience func() time.Duration, command func() int) int {
	ended := make(chan int, 1)
	go func() { ended <- command() }()
	select {
	case status := <-ended:
		return status
	case <-ctx.Done():
	}
	var s *SignalError
	if !errors.As(context.Cause(ctx), &s) {
		return <-ended
	}
	late := time.NewTimer(patience())
	defer late.Stop()
	select {
	case status := <-ended:
		return status
	case <-late.C:
		return s.Code().ExitCode()
	}
}

// Between two looks whether something has ended.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// StopGroup asks a group of a child that is not ours to stop and kills it after
// grace. alive reports whether it still runs (for an agent: whether its lock is
// held); nothing is signalled unless it says so just before, because process
// ids are used again. Errors: [ErrAlive], ctx's cause.
func StopGroup(ctx context.Context, pid int, grace time.Duration, alive func() bool) error {
	g, err := groupOf(pid)
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	err = stop(ctx, grace, alive, func(hard bool) error {
		if !hard {
			return g.ask(nil)
		}
		return errors.Join(g.kill(), g.killSession())
	})
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}

// StopHolders is StopGroup for whoever holds a lock on the file at path: a child
// whose parent was killed, so that its id was never recorded, or is no longer
// its own. Of each holder that leads a group the whole group is stopped, of
// another only that process; never ourselves. Where holders cannot be found
// (only Linux shows them) it is StopGroup of pid, unless that is 0.
func StopHolders(ctx context.Context, path string, pid int, grace time.Duration, alive func() bool) error {
	holders, err := lockHolders(path)
	if err != nil {
		return fmt.Errorf("stop who holds %s: %w", path, err)
	}
	if len(holders) == 0 && pid != 0 {
		return StopGroup(ctx, pid, grace, alive)
	}
	err = stop(ctx, grace, alive, func(hard bool) error { return signalHolders(path, hard) })
	if err != nil {
		return fmt.Errorf("stop who holds %s: %w", path, err)
	}
	return nil
}

// stop asks, waits, kills and waits, as long as alive says so.
func stop(ctx context.Context, grace time.Duration, alive func() bool, signal func(hard bool) error) error {
	if !alive() {
		return nil
	}
	if err := signal(false); err != nil {
		return err
	}
	gone, err := waitUntil(ctx, grace, func() bool { return !alive() })
	if gone || err != nil {
		return err
	}
	if err := signal(true); err != nil {
		return err
	}
	gone, err = waitUntil(ctx, settle, func() bool { return !alive() })
	if gone || err != nil {
		return err
	}
	return ErrAlive
}

// waitUntil looks until a condition holds or the limit is over. The pauses grow
// with the time that was waited already. The error is ctx's cause.
func waitUntil(ctx context.Context, limit time.Duration, holds func() bool) (bool, error) {
	for waited := time.Duration(0); ; {
		if holds() {
			return true, nil
		}
		if waited >= limit {
			return false, nil
		}
		pause := min(max(waited/10, minPause), maxPause, limit-waited)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false, context.Cause(ctx)
		case <-timer.C:
			waited += pause
		}
	}
}

// Birth tells a process from another that gets the same id after it has ended. It
// means nothing by itself, and is "" where the system does not tell it (only
// Linux does).
func Birth(pid int) string { return look(pid).birth }

// Lives reports whether the process with this birth has not ended. Where births are
// not known nothing is said to live.
func Lives(pid int, born string) bool {
	s := look(pid)
	return born != "" && s.birth == born && s.state != "Z" && s.state != "X"
}

// Stopped reports whether a process was stopped, as by Ctrl-Z, and does nothing
// until somebody continues it. Only Linux tells.
func Stopped(pid int) bool { return look(pid).state == "T" }

// Reused reports whether an id belongs to another process now than to the one
// with this birth. A process that has ended and whose id is free is not reused.
func Reused(pid int, was string) bool {
	now := Birth(pid)
	return was != "" && now != "" && now != was
}

// stat is what the system says about a process; empty if it is gone, or if the
// system does not tell.
type stat struct {
	state          string // Z: ended, but not waited for; T: stopped
	parent         int
	group, session int
	birth          string // "" in a text that is cut short
}

// Box makes a child the first process of user, mount, pid and IPC namespaces of its own. Its
// program, uwf-box, does there what its plan says, and runs another program; all that this has
// started ends with the child.
type Box struct {
	Plan    []byte   // the child reads it from descriptor 3
	Network bool     // it has a network namespace, too
	Owner   *Owner   // whose files it writes, besides its user's
	Status  *os.File // the child writes there how the program ended, for who comes after us; may be nil
	// Listener gets the listener that uwf-box makes in its network, if the plan has one. It owns it.
	Listener func(*os.File)
	// Else is what is started where the child could not do its part, with the reason. Nil: nothing is.
	Else func(why *BoxError) (Command, error)
}

// Owner is a user that has files.
type Owner struct{ UID, GID int }

// BoxError is why a program could not be run in namespaces of its own.
type BoxError struct {
	Stage string // what could not be done, such as "namespaces", "mount"
	Err   error
}

// Error implements error.
func (e *BoxError) Error() string { return e.Stage + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e *BoxError) Unwrap() error { return e.Err }

// refusal is what the child said: an error text of its own with the number of the kernel's error.
type refusal struct {
	text string
	no   syscall.Errno
}

// Error implements error.
func (r refusal) Error() string { return r.text }

// Is compares the kernel's error.
func (r refusal) Is(target error) bool { return r.no != 0 && errors.Is(r.no, target) }

// startBox starts the child, or what is to be started instead.
func startBox(c Command) (*Child, error) {
	box := c.Box
	c.Box = nil
	child, err := box.start(c)
	var why *BoxError
	if err == nil || !errors.As(err, &why) {
		return child, err
	}
	if box.Else == nil {
		return nil, why
	}
	instead, err := box.Else(why)
	if err != nil {
		return nil, err
	}
	instead.Stdin, instead.Stdout, instead.Stderr = c.Stdin, c.Stdout, c.Stderr
	instead.Session, instead.WithParent = c.Session, c.WithParent
	instead.Inherit = append(c.Inherit, instead.Inherit...)
	return Start(instead)
}
