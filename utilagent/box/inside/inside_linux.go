// Package inside implements uwf-box, the first process in the namespaces of a confined program. It sets up
// the program's file system, drops its own privileges, runs the program and exits with it; the kernel then
// kills all descendants.
//
//   - inside_linux.go: the sequence, and running the program;
//   - mounts_linux.go: the file system;
//   - rights_linux.go: Landlock and capabilities, as a second barrier, and the network.
package inside

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

// patience bounds how long this process waits for a plan, in seconds: while it exists, so do its mounts.
const patience = 10 * 60

// stageError reports why a program was not started.
type stageError struct {
	stage string
	err   error
}

func (e *stageError) Error() string { return e.stage + ": " + e.err.Error() }

func (e *stageError) Unwrap() error { return e.err }

func at(stage string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{stage, err}
}

// Main runs the plan it receives and returns the exit status.
func Main(stderr io.Writer) int {
	if os.Getpid() != 1 {
		fmt.Fprintln(stderr, "uwf-box runs programs in a sandbox for uwf. To check whether it works: uwf doctor\n"+
			"plan version "+plan.Version)
		return plan.Failed
	}
	// The program inherits none of our descriptors, nor their locks.
	err := at("descriptors", unix.CloseRange(plan.SocketFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC))
	// Privileges belong to a thread, and the program inherits those of the one that starts it.
	todo, done := make(chan func() error), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		for f := range todo {
			done <- f()
		}
	}()
	s, t := socket{}, (*tree)(nil)
	first, failed := s.plan()
	if err = cmp.Or(err, failed); err == nil {
		todo <- func() error { return restrict(first) }
		t, err = newTree(first.Mounts)
		err = cmp.Or(err, <-done)
	}
	p, failed := s.plan()
	if errors.Is(failed, io.EOF) && !errors.As(err, new(*stageError)) { // uwf has exited, or needs no program
		return plan.Failed
	}
	signals := forward() // not before: a signal ends a process that waits, instead of a later program
	listener, rules := -1, -1
	if err = cmp.Or(err, failed); err == nil {
		listener, rules, err = prepare(p, t)
	}
	pid := 0
	if err == nil {
		todo <- func() (err error) { pid, err = start(p, rules, signals); return err }
		err = <-done
	}
	if err != nil {
		report(failure(err), -1)
		return plan.Failed
	}
	report(plan.Report{Started: plan.Version}, listener)
	if p.Path == "" {
		return 0
	}
	status, err := wait(pid)
	if err != nil {
		return plan.Failed
	}
	endAll()
	raw := uint32(status)
	_, _ = unix.Write(s.status, plan.Report{Ended: &raw}.Line()) // nobody is there to learn of an error
	for _, fd := range s.locks {
		_ = unix.Close(fd)
	}
	report(plan.Report{Ended: &raw}, -1)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// socket receives the plan, and files with it. It replaces this process's streams.
type socket struct {
	status int   // file for the report of the exit
	locks  []int // held while this process runs
}

// Read implements io.Reader.
func (s *socket) Read(b []byte) (n int, err error) {
	oob, more := make([]byte, unix.CmsgSpace(4*plan.MaxFiles)), 0
	for again := true; again; again = errors.Is(err, unix.EINTR) {
		n, more, _, _, err = unix.Recvmsg(plan.SocketFD, b, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err == nil && more > 0 {
		err = s.take(oob[:more])
	}
	if err == nil && n == 0 || errors.Is(err, unix.EAGAIN) {
		err = io.EOF
	}
	return max(n, 0), err
}

// plan waits for the next part of the plan. The error is io.EOF if there is none.
func (s *socket) plan() (p plan.Plan, err error) {
	wait := unix.Timeval{Sec: patience}
	err = unix.SetsockoptTimeval(plan.SocketFD, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &wait)
	size := make([]byte, 4)
	if err == nil {
		_, err = io.ReadFull(s, size)
	}
	text := make([]byte, min(binary.BigEndian.Uint32(size), plan.MaxSize))
	if err == nil {
		_, err = io.ReadFull(s, text)
	}
	if err == nil {
		p, err = plan.Decode(text)
	}
	if err == nil && p.Version != plan.Version {
		return p, at("version", fmt.Errorf("uwf uses plan version %q, but uwf-box supports %q; install both from "+
			"one release", p.Version, plan.Version))
	}
	return p, at("plan", err)
}

func (s *socket) take(oob []byte) error {
	var fds []int
	messages, err := unix.ParseSocketControlMessage(oob)
	if err == nil && len(messages) == 1 {
		fds, err = unix.ParseUnixRights(&messages[0])
	}
	if len(fds) < 4 {
		return errors.Join(unix.EBADMSG, err)
	}
	for stream := range 3 {
		err = errors.Join(err, unix.Dup3(fds[stream], stream, 0), unix.Close(fds[stream]))
	}
	s.status, s.locks = fds[3], fds[4:]
	return err
}

// restrict drops this thread's privileges, except Landlock's, which needs the program's file system.
func restrict(p plan.Plan) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return at("rights", err)
	}
	if p.Nest && os.Geteuid() == 0 {
		p.Keep |= 1 << unix.CAP_SETFCAP // required to be root in a nested namespace
	}
	if err := filter.DropCapabilities(p.Keep, true); err != nil {
		return at("capabilities", err)
	}
	calls := filter.New(filter.Rules{Shares: true, Namespaces: p.Nest, Mounts: p.Nest, NoUnixSockets: p.NoUnixSockets, NoAttributes: p.Keep&(1<<unix.CAP_SETFCAP) != 0})
	return at("seccomp", calls.Install())
}

// prepare sets up the program's network and file system. It returns the listener in its network and the rules of
// Landlock, or -1.
func prepare(p plan.Plan, t *tree) (listener, rules int, err error) {
	listener, rules = -1, -1
	if p.Network {
		err = loopback()
	}
	if p.Listen && err == nil {
		listener, err = listen()
	}
	if err != nil {
		return listener, rules, at("network", err)
	}
	if err := t.finish(p); err != nil {
		return listener, rules, at("mount", err)
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return listener, rules, at("directory", fmt.Errorf("%s: %w", p.Dir, err))
	}
	if rules, err = landlock(p); err != nil {
		return listener, rules, at("landlock", err)
	}
	// The program runs as the same user, so it must not be able to trace us or take our descriptors.
	return listener, rules, at("rights", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
}

func failure(err error) plan.Report {
	r := plan.Report{Stage: "box", Error: err.Error()}
	if s := (*stageError)(nil); errors.As(err, &s) {
		r.Stage, r.Error = s.stage, s.err.Error()
	}
	if no := syscall.Errno(0); errors.As(err, &no) {
		r.Errno = int(no)
	}
	return r
}

// report sends a report, with a descriptor unless that is -1. An error has no recipient.
func report(r plan.Report, fd int) {
	if fd < 0 {
		_ = unix.Sendto(plan.SocketFD, r.Line(), unix.MSG_NOSIGNAL, nil)
		return
	}
	_ = unix.Sendmsg(plan.SocketFD, r.Line(), unix.UnixRights(fd), nil, unix.MSG_NOSIGNAL)
	_ = unix.Close(fd)
}

// start applies the rules of Landlock to this thread and starts the program, if any, in a new process group, to which
// signals are forwarded.
func start(p plan.Plan, rules int, forward func() <-chan os.Signal) (pid int, err error) {
	if err := obey(rules); err != nil || p.Path == "" {
		return 0, at("landlock", err)
	}
	signals := forward()
	if err := ignoreSignals(); err != nil {
		return 0, at("signals", err)
	}
	pid, err = syscall.ForkExec(p.Path, p.Args, &syscall.ProcAttr{
		Env: p.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setpgid: true},
	})
	if err != nil {
		return 0, at(plan.StageStart, fmt.Errorf("start %s: %w", p.Path, &os.PathError{Op: "fork/exec", Path: p.Path, Err: err}))
	}
	go func() {
		for s := range signals {
			if s, ok := s.(syscall.Signal); ok {
				_ = syscall.Kill(-pid, s) // it may have exited
			}
		}
	}()
	for fd := range 3 { // so that readers of the program's output don't wait for us
		_ = syscall.Close(fd) // it may report an error of an earlier write
	}
	return pid, nil
}

// forwarded lists the signals that uwf sends to stop or continue a program.
func forwarded() []os.Signal {
	return []os.Signal{unix.SIGHUP, unix.SIGINT, unix.SIGTERM, unix.SIGCONT}
}

// forward begins to receive the signals to forward, beside the setup because each takes several switches between
// threads. The function that it returns waits until that is done.
func forward() func() <-chan os.Signal {
	signals, ready := make(chan os.Signal, 16), make(chan struct{})
	go func() {
		signal.Notify(signals, forwarded()...)
		close(ready)
	}()
	return func() <-chan os.Signal { <-ready; return signals }
}

// ignoreSignals ignores all other signals, by which a program could end this process. It bypasses package
// signal, whose ignored signals the program would inherit.
func ignoreSignals() error {
	handled := append(forwarded(), unix.SIGKILL, unix.SIGSTOP, unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE)
	ignore := struct{ handler, flags, restorer, mask uintptr }{handler: 1}
	for s := syscall.Signal(1); s <= unix.SIGSYS; s++ {
		if slices.Contains(handled, os.Signal(s)) {
			continue
		}
		_, _, failed := unix.RawSyscall6(unix.SYS_RT_SIGACTION, uintptr(s), uintptr(unsafe.Pointer(&ignore)), 0, 8, 0, 0)
		if failed != 0 {
			return os.NewSyscallError("rt_sigaction", failed)
		}
	}
	return nil
}

// endAll ends what the program has started, before uwf learns of its end: uwf needn't wait for this process then. A
// process that is being created when the signal is sent isn't created.
func endAll() {
	_ = unix.Kill(-1, unix.SIGKILL) // all but this process; there may be none
	for {
		if _, err := unix.Wait4(-1, nil, unix.WALL, nil); err != nil && !errors.Is(err, unix.EINTR) {
			return
		}
	}
}

// wait returns the program's exit status, and reaps orphans while it waits.
func wait(pid int) (status syscall.WaitStatus, err error) {
	for {
		switch ended, err := syscall.Wait4(-1, &status, 0, nil); {
		case errors.Is(err, syscall.EINTR):
		case err != nil:
			return status, err
		case ended == pid:
			return status, nil
		}
	}
}
