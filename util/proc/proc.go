// Package proc starts a child in its own process group and terminates the whole group within bounded time,
// even if the child ignores signals, is stopped, or leaves children behind.
//
// A process that moves itself to another group escapes, except on Linux from a child with [Command.Session].
package proc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"
	"time"

	"github.com/united-workforce/uwf/protocol"
)

// Command is a child to start. Its streams are files or ends of pipes from [os.Pipe], so that the child can
// outlive its parent and a process that holds a stream can't block Wait.
type Command struct {
	Path   string   // not searched in PATH
	Args   []string // without the program's name
	Dir    string
	Env    []string // nil: empty
	Stdin  *os.File // nil: the null device
	Stdout *os.File // nil: the null device
	Stderr *os.File // nil: the null device
	// Inherit lists files passed to the child: from descriptor 3 on, or as inherited handles on Windows.
	Inherit []*os.File
	// Session detaches the child from our terminal, so that it can't wait for a person (a new session; on
	// Windows no console). On Linux all groups of the session are terminated if the child is killed or fails.
	Session bool
	// WithParent asks the child to exit (SIGTERM) if this process is killed. Only Linux supports it.
	WithParent bool
	// Init makes the child, whose program calls [NewInit], the init of a pid namespace for its command, so
	// that no process outlives it. Only Linux supports it. If the system doesn't allow namespaces, the child
	// adopts and kills leftover processes of the command.
	Init bool
	// Box makes the child, whose program is uwf-box, run the plan's program in namespaces. The plan then
	// contains Args, Dir and Env.
	Box        *Box
	namespaces func(*syscall.SysProcAttr)
}

// SignalError is the cause of a context canceled by a signal. [Child.Wait] forwards that signal.
type SignalError struct{ Signal os.Signal }

func (e *SignalError) Error() string { return "stopped by signal " + e.Signal.String() }

// Code returns the signal's code, which implies the usual exit status.
func (e *SignalError) Code() protocol.Code {
	switch e.Signal {
	case os.Interrupt:
		return protocol.CodeInterrupted
	case syscall.SIGHUP:
		return protocol.CodeHangup
	}
	return protocol.CodeTerminated
}

// ErrAlive means that killed processes are still running: they hang in the kernel or belong to another user.
var ErrAlive = errors.New("does not exit")

// settle is the time that a killed process gets to exit.
const settle = 5 * time.Second

// Child is a started process, the leader of its group.
type Child struct {
	cmd     *exec.Cmd
	group   group
	session bool
	release func()                // stops tying it to this process
	ended   func() (Status, bool) // status reported by an init; nil if it isn't one
	soon    func() (Status, bool) // see [Box.Soon]; nil if not set
	init    bool                  // it must report one unless it could not run the command
}

// Start starts the child. Call Wait exactly once.
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
	g, release, err := startChild(cmd, c)
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", c.Path, err)
	}
	return &Child{cmd: cmd, group: g, session: c.Session, release: release}, nil
}

func startChild(cmd *exec.Cmd, c Command) (g group, release func(), err error) {
	if c.WithParent {
		return startTied(cmd, c)
	}
	g, err = startInGroup(cmd, c)
	return g, func() {}, err
}

// setStreams leaves nil streams unset, because a nil *os.File in an interface isn't nil.
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

// Pid returns the id of the child's process and group.
func (c *Child) Pid() int { return c.cmd.Process.Pid }

// Signal sends a signal to the child's group before the context of Wait is done. On Windows it always sends a
// break event.
func (c *Child) Signal(s os.Signal) error { return c.group.signal(&SignalError{Signal: s}) }

// InitFailed is the exit status of an init that can't run its command, the same as in shells.
const InitFailed = 126

// ErrNoInit means that a program that should have become the init of a command exited instead.
var ErrNoInit = errors.New("the program did not become the init of the command")

// Status is the exit status of a child.
type Status struct {
	Code   int    // exit status; -1 if terminated by a signal
	Signal string // such as "killed"; "" if it exited
}

// Wait waits for the child. If ctx is done first, it asks the group to stop (SIGTERM, or the signal of a
// [*SignalError] cause), kills it after grace, and returns ctx's cause. If the child exits by itself, Wait
// immediately kills the rest of its group. It returns [ErrAlive] if processes survive that.
func (c *Child) Wait(ctx context.Context, grace time.Duration) (Status, error) {
	defer c.group.close()
	ended := make(chan error, 2)
	go func() {
		if c.soon != nil {
			if status, ok := c.soon(); ok {
				c.ended = func() (Status, bool) { return status, true }
				ended <- nil
			}
		}
		ended <- c.cmd.Wait()
		c.release()
	}()
	select {
	case err := <-ended:
		status, err := c.status(err)
		if c.soon != nil && err == nil {
			return status, nil // nothing else is left
		}
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

// stop asks the group to stop and waits for all of it, kills the rest after grace, and returns the child's
// own status.
func (c *Child) stop(ended <-chan error, cause error, grace time.Duration) (waitErr, err error) {
	if err := c.group.signal(cause); err != nil {
		return nil, err
	}
	limit, cancel := context.WithTimeout(context.Background(), grace)
	defer cancel()
	select {
	case waitErr = <-ended:
		_, _ = waitUntil(limit, grace, c.group.gone) // the rest is killed
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

// clear kills leftover processes of the child. A child that exited successfully is trusted to have terminated
// processes in other groups, because searching for them takes milliseconds.
func (c *Child) clear(s Status) error {
	if c.session && s.Code != 0 {
		if err := c.group.killSession(); err != nil {
			return err
		}
	}
	return c.group.clear()
}

// status converts a result of package exec to a Status.
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

// WithSignals returns a context that is canceled by the first interrupt, terminate or hangup signal, with a
// [*SignalError] as its cause. A second signal terminates the process immediately by default. It is for a whole
// process: the signals stay handled after the function that it returns has canceled the context.
func WithSignals(parent context.Context) (context.Context, func()) {
	ctx, stop := WithSignalsOnDemand(parent)
	go AwaitSignals(ctx) // beside the start of the program, because each signal takes several switches between threads
	return ctx, stop
}

// WithSignalsOnDemand is like [WithSignals], but the first [AwaitSignals] begins to handle the signals. It is for a
// program that may end before it needs that: handling them takes two threads and 0.4 ms.
func WithSignalsOnDemand(parent context.Context) (context.Context, func()) {
	var ctx context.Context
	var cancel context.CancelCauseFunc
	handle := sync.OnceFunc(func() {
		signals := make(chan os.Signal, 1)
		for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
			if !signal.Ignored(s) { // for example by nohup
				signal.Notify(signals, s)
			}
		}
		go func() {
			select {
			case s := <-signals:
				signal.Stop(signals)
				cancel(&SignalError{Signal: s})
			case <-ctx.Done():
			}
		}()
	})
	ctx, cancel = context.WithCancelCause(context.WithValue(parent, signalsHandler{}, handle))
	return ctx, func() { cancel(nil) }
}

type signalsHandler struct{}

// AwaitSignals waits until a context of [WithSignals] can be canceled by a signal. Call it before work that must not
// be killed by one.
func AwaitSignals(ctx context.Context) {
	if handle, ok := ctx.Value(signalsHandler{}).(func()); ok {
		handle()
	}
}

// UntilSignal runs a command and returns its exit status. After a signal has canceled ctx, the command gets
// the time returned by patience to finish; then UntilSignal returns without it, because some work doesn't
// check the context while the user waits after Ctrl-C. That is as safe as a kill, and the process must exit
// then.
func UntilSignal(ctx context.Context, patience func() time.Duration, command func() int) int {
	ended := make(chan int, 1)
	go func() {
		GrowStack(false)
		ended <- command()
	}()
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

// GrowStack makes room on the stack of a goroutine that begins. Otherwise a step doubles it four times, and each time
// finding what is on it takes tables of the program into memory, 2 MB in total. Its argument must be false.
//
//go:noinline
func GrowStack(never bool) (sum byte) {
	const room = 60 << 10
	if never {
		var b [room]byte
		for i := range b {
			b[i] = byte(i) + sum
			sum += b[i/2]
		}
	}
	return sum
}

// Intervals between checks whether a process has exited.
const (
	minPause = time.Millisecond
	maxPause = 50 * time.Millisecond
)

// StopGroup asks the group of a process that isn't our child to stop and kills it after grace. alive reports
// whether it is still running (for an agent: whether its lock is held); StopGroup checks it before each
// signal, because process ids are reused. Errors: [ErrAlive], ctx's cause.
func StopGroup(ctx context.Context, pid int, grace time.Duration, alive func() bool) error {
	g, err := groupOf(pid)
	if err == nil {
		err = stop(ctx, grace, alive, g.end)
	}
	if err != nil {
		return fmt.Errorf("stop process %d: %w", pid, err)
	}
	return nil
}

// end asks the group to stop, or kills its session.
func (g group) end(hard bool) error {
	if hard {
		return errors.Join(g.kill(), g.killSession())
	}
	return g.signal(nil)
}

// StopHolders is like StopGroup for the holders of a lock on the file at path: a child whose parent was
// killed before it recorded the child's id, or whose id was reused. If a holder leads a group, it stops the
// whole group, otherwise only that process; never this process. If the system doesn't show holders (only
// Linux does), it calls StopGroup with pid unless that is 0.
func StopHolders(ctx context.Context, path string, pid int, grace time.Duration, alive func() bool) error {
	holders, err := lockHolders(path)
	if err == nil && len(holders) == 0 && pid != 0 {
		return StopGroup(ctx, pid, grace, alive)
	}
	if err == nil {
		err = stop(ctx, grace, alive, func(hard bool) error { return signalHolders(path, hard) })
	}
	if err != nil {
		return fmt.Errorf("stop who holds %s: %w", path, err)
	}
	return nil
}

// stop asks, waits, kills and waits, while alive returns true.
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

// waitUntil waits until a condition holds or the limit has passed. The intervals grow with the time waited.
// The error is ctx's cause.
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

// Birth returns a value that distinguishes a process from later ones with the same id. It is opaque, and ""
// on systems other than Linux.
func Birth(pid int) string { return look(pid).birth }

// Lives reports whether the process with this birth is still running. It returns false if births aren't
// supported.
func Lives(pid int, born string) bool {
	s := look(pid)
	return born != "" && s.birth == born && s.state != "Z" && s.state != "X"
}

// Stopped reports whether a process is stopped, such as by Ctrl-Z, until it is continued. It always returns
// false on systems other than Linux.
func Stopped(pid int) bool { return look(pid).state == "T" }

// Reused reports whether an id now belongs to a different process than the one with this birth. An unused id
// isn't reused.
func Reused(pid int, was string) bool {
	now := Birth(pid)
	return was != "" && now != "" && now != was
}

// stat is the system's information about a process; empty if it doesn't exist or isn't supported.
type stat struct {
	state          string // Z: exited, but not waited for; T: stopped
	parent         int
	group, session int
	birth          string // "" in truncated text
}

// Box makes a child the first process of its own user, mount, pid and IPC namespaces. Its program, uwf-box,
// sets them up as described by its plan and runs another program; all processes started by that are
// terminated together with the child.
type Box struct {
	// Plan returns the encoded plan. It is called in any case, while the child starts. If it fails, nothing is run, and
	// Start returns its error.
	Plan    func() ([]byte, error)
	Ahead   *Ahead   // a child that was started before; can be nil
	Network bool     // with a network namespace as well
	Creates bool     // the child starts without namespaces, and starts itself in them; for this user's id only
	Owner   *Owner   // user whose files it writes, in addition to its own
	Status  *os.File // the child writes the program's status there, for later processes; can be nil
	// Soon lets Wait return once the program's processes have ended, before the child. Not for who ends all its children.
	Soon bool
	// Listener receives and owns the listener that uwf-box creates in its network, if the plan has one.
	Listener func(*os.File)
	// Else returns the command to start instead if the child's setup fails for the reason why. Nil: none.
	Else func(err *BoxError) (Command, error)
}

// Owner is a user who owns files.
type Owner struct{ UID, GID int }

// ErrBoxSilent reports that uwf-box crashed, was killed or hung during the setup, as for want of memory or processes.
var ErrBoxSilent = errors.New("printed nothing")

// BoxError explains why a program could not be run in namespaces.
type BoxError struct {
	Stage string // failed operation, such as "namespaces", "mount"
	Err   error
}

func (e *BoxError) Error() string { return e.Stage + ": " + e.Err.Error() }

func (e *BoxError) Unwrap() error { return e.Err }

// refusal is an error reported by the child: its text and the kernel's error number.
type refusal struct {
	text string
	no   syscall.Errno
}

func (r refusal) Error() string { return r.text }

// Is compares the kernel's error number.
func (r refusal) Is(target error) bool { return r.no != 0 && errors.Is(r.no, target) }

// startBox starts the child, or the fallback command.
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

// StartDetached starts a process without input and output, and doesn't wait for it. It outlives us and our
// terminal.
func StartDetached(dir string, environ []string, path string, args ...string) error {
	cmd := exec.Command(path, args...)
	cmd.Dir, cmd.Env, cmd.SysProcAttr = dir, environ, apart()
	if err := cmd.Start(); err != nil {
		return err
	}
	return cmd.Process.Release()
}

// Output is the output of a program.
type Output struct {
	Stdout, Stderr []byte
	// Cut means that stdout was longer than its limit; Stdout then contains the beginning.
	Cut bool
	Status
}

// maxStderr bounds the part of stderr that is kept, in bytes: its beginning.
const maxStderr = 8 << 10

// Run runs a program, passes it stdin (nil: nothing), and returns its output, with at most the given number
// of bytes of stdout. It ignores the streams of c. When ctx is done, the whole group gets grace to exit.
// Processes left behind by the program don't delay Run longer than that. Run returns an error if the program
// can't be started, or ctx's cause; a nonzero exit status isn't an error.
func Run(ctx context.Context, c Command, stdin io.Reader, most int64, grace time.Duration) (out Output, err error) {
	var ours, theirs [3]*os.File // stdin, stdout, stderr
	closed := func(files []*os.File) {
		for i, f := range files {
			if f != nil {
				_ = f.Close()
			}
			files[i] = nil
		}
	}
	defer closed(ours[:])
	defer closed(theirs[:])
	for i := range ours {
		if i == 0 && stdin == nil {
			continue
		}
		if ours[i], theirs[i], err = os.Pipe(); err != nil {
			return out, err
		}
	}
	ours[0], theirs[0] = theirs[0], ours[0]
	c.Stdin, c.Stdout, c.Stderr = theirs[0], theirs[1], theirs[2]
	child, err := Start(c)
	if err != nil {
		return out, err
	}
	closed(theirs[:]) // the child has its own
	if stdin != nil {
		in := ours[0]
		ours[0] = nil
		go func() { // a program that exits early closes the pipe
			_, _ = io.Copy(in, stdin)
			_ = in.Close()
		}()
	}
	var read [3]chan []byte
	for i, n := range []int64{0, most + 1, maxStderr} {
		if i == 0 {
			continue
		}
		read[i] = make(chan []byte, 1)
		go func(from *os.File) {
			data, _ := io.ReadAll(io.LimitReader(from, n))
			_, _ = io.Copy(io.Discard, from)
			read[i] <- data
		}(ours[i])
	}
	out.Status, err = child.Wait(ctx, grace)
	late := time.AfterFunc(grace, func() { // leftover processes hold them open
		for _, f := range ours[1:] {
			_ = f.SetReadDeadline(time.Unix(1, 0))
		}
	})
	out.Stdout, out.Stderr = <-read[1], <-read[2]
	late.Stop()
	if out.Cut = int64(len(out.Stdout)) > most; out.Cut {
		out.Stdout = out.Stdout[:most]
	}
	return out, err
}
