// Package inside implements uwf-box, the first process in the namespaces of a confined program. It sets up
// the program's file system, drops its own privileges, runs the program and exits with it; the kernel then
// kills all descendants.
//
//   - inside_linux.go: the sequence, and running the program;
//   - mounts_linux.go: the file system;
//   - rights_linux.go: Landlock and capabilities, as a second barrier, and the network.
package inside

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

const (
	maxPlan = 64 << 20 // bytes
	// patience bounds how long this process waits for a plan: while it exists, so do its mounts.
	patience = 10 * 60 // seconds
)

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

// Main runs the plan it receives and returns the exit status. It may have to create the namespaces; see [plan.Create].
func Main(args []string, stderr io.Writer) int {
	if len(args) == 2 && args[0] == plan.Create {
		return create(args[1] == strconv.FormatBool(true))
	}
	if os.Getpid() != 1 {
		fmt.Fprintln(stderr, "uwf-box runs programs in a sandbox for uwf. To check whether it works: uwf doctor\n"+
			"plan version "+plan.Version)
		return plan.Failed
	}
	runtime.LockOSThread() // privileges belong to a thread, and the program inherits this one's
	p, files, err := receive()
	if errors.Is(err, io.EOF) { // uwf has exited, or needs no program
		return plan.Failed
	}
	signals := forward() // not before: a signal ends a process that waits, instead of a later program
	listener := -1
	if err == nil {
		listener, err = prepare(p)
	}
	pid := 0
	if err == nil && p.Path != "" {
		pid, err = start(p, signals)
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
	_, _ = unix.Write(files.status, plan.Report{Ended: &raw}.Line()) // nobody is there to learn of an error
	for _, fd := range files.locks {
		_ = unix.Close(fd)
	}
	report(plan.Report{Ended: &raw}, -1)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// create runs uwf-box in new namespaces, and returns its exit status.
func create(network bool) int {
	a := plan.Namespaces(network)
	a.Pdeathsig = unix.SIGKILL
	a.UidMappings = []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}}
	a.GidMappings = []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}}
	runtime.LockOSThread()                                 // the child ends with this thread
	signal.Notify(make(chan os.Signal, 1), forwarded()...) // the child receives them as well
	pid, err := syscall.ForkExec("/proc/self/exe", []string{"uwf-box"}, &syscall.ProcAttr{Files: []uintptr{0, 1, 2, plan.SocketFD}, Sys: a})
	if err != nil {
		report(failure(at("namespaces", err)), -1)
		return plan.Failed
	}
	_ = unix.Close(plan.SocketFD)
	status, err := wait(pid)
	if err == nil && status.Signaled() {
		_ = unix.Kill(os.Getpid(), status.Signal())
	}
	return status.ExitStatus()
}

// given holds the files that come with a plan, except the streams.
type given struct {
	status int   // file for the report of the exit
	locks  []int // held while this process runs
}

// receive waits for the plan, and replaces this process's streams by the program's. The error is io.EOF if there is no
// plan.
func receive() (p plan.Plan, files given, err error) {
	text, oob := make([]byte, 64<<10), make([]byte, unix.CmsgSpace(4*plan.MaxFiles))
	n, more := 0, 0
	err = unix.SetsockoptTimeval(plan.SocketFD, unix.SOL_SOCKET, unix.SO_RCVTIMEO, &unix.Timeval{Sec: patience})
	for again := err == nil; again; again = errors.Is(err, unix.EINTR) {
		n, more, _, _, err = unix.Recvmsg(plan.SocketFD, text, oob, unix.MSG_CMSG_CLOEXEC)
	}
	if err == nil && n == 0 || errors.Is(err, unix.EAGAIN) {
		err = io.EOF
	}
	if err == nil {
		files, err = takeFiles(oob[:more])
	}
	if err != nil {
		return p, files, at("plan", err)
	}
	rest, err := io.ReadAll(io.LimitReader(os.NewFile(plan.SocketFD, "plan"), maxPlan))
	if err == nil {
		p, err = plan.Decode(append(text[:n], rest...))
	}
	if err != nil {
		return p, files, at("plan", err)
	}
	if p.Version != plan.Version {
		return p, files, at("version", fmt.Errorf("uwf uses plan version %q, but uwf-box supports %q; install both from "+
			"one release", p.Version, plan.Version))
	}
	return p, files, nil
}

// takeFiles takes the files that come with a plan.
func takeFiles(oob []byte) (given, error) {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil || len(messages) != 1 {
		return given{}, errors.Join(unix.EBADMSG, err)
	}
	fds, err := unix.ParseUnixRights(&messages[0])
	if err != nil || len(fds) < 4 {
		return given{}, errors.Join(unix.EBADMSG, err)
	}
	for stream := range 3 {
		if err := unix.Dup3(fds[stream], stream, 0); err != nil {
			return given{}, err
		}
		_ = unix.Close(fds[stream])
	}
	return given{fds[3], fds[4:]}, nil
}

// prepare turns this process into the program's environment. It returns the listener in its network, or -1.
func prepare(p plan.Plan) (listener int, err error) {
	listener = -1
	// The program inherits none of our descriptors, nor their locks.
	if err := unix.CloseRange(plan.SocketFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return -1, at("descriptors", err)
	}
	if p.Network {
		if err := loopback(); err != nil {
			return -1, at("network", err)
		}
	}
	if p.Listen {
		if listener, err = listen(); err != nil {
			return -1, at("network", err)
		}
	}
	return listener, restrict(p)
}

// restrict sets up the program's file system, and drops privileges.
func restrict(p plan.Plan) error {
	mask := unix.Umask(0) // so that files get exactly the requested mode
	err := mount(p)
	unix.Umask(mask)
	if err != nil {
		return err
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return at("directory", fmt.Errorf("%s: %w", p.Dir, err))
	}
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return at("rights", err)
	}
	if err := landlock(p); err != nil {
		return at("landlock", err)
	}
	if p.Nest && os.Geteuid() == 0 {
		p.Keep |= 1 << unix.CAP_SETFCAP // required to be root in a nested namespace
	}
	if err := dropCapabilities(p.Keep); err != nil {
		return at("capabilities", err)
	}
	calls := filter.New(filter.Rules{Shares: true, Namespaces: p.Nest, Mounts: p.Nest, NoUnixSockets: p.NoUnixSockets, NoAttributes: p.Keep&(1<<unix.CAP_SETFCAP) != 0})
	if err := calls.Install(); err != nil {
		return at("seccomp", err)
	}
	// The program runs as the same user, so it must not be able to trace us or take our descriptors.
	return at("rights", unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0))
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

// start starts the program in a new process group, to which signals are forwarded.
func start(p plan.Plan, forward func() <-chan os.Signal) (pid int, err error) {
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
