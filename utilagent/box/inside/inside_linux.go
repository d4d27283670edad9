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
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

// maxPlan bounds the plan, in bytes.
const maxPlan = 64 << 20

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
	runtime.LockOSThread() // privileges belong to a thread, and the program inherits this one's
	signals := forward()
	report := os.NewFile(plan.ReportFD, "report")
	p, err := read(os.NewFile(plan.PlanFD, "plan"))
	if err == nil {
		err = prepare(p)
	}
	pid := 0
	if err == nil && p.Path != "" {
		pid, err = start(p, signals)
	}
	if err != nil {
		writeReport(report, failure(err))
		return plan.Failed
	}
	writeReport(report, plan.Report{Started: plan.Version})
	if p.Path == "" {
		return 0
	}
	status, err := wait(pid)
	if err != nil {
		return plan.Failed
	}
	raw := uint32(status)
	writeReport(report, plan.Report{Ended: &raw})
	if p.Status {
		writeReport(os.NewFile(plan.StatusFD, "status"), plan.Report{Ended: &raw})
	}
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

func read(from *os.File) (p plan.Plan, err error) {
	text, err := io.ReadAll(io.LimitReader(from, maxPlan))
	if err != nil {
		return p, at("plan", err)
	}
	if p, err = plan.Decode(text); err != nil {
		return p, at("plan", err)
	}
	if p.Version != plan.Version {
		return p, at("version", fmt.Errorf("uwf uses plan version %q, but uwf-box supports %q; install both from "+
			"one release", p.Version, plan.Version))
	}
	return p, nil
}

// prepare turns this process into the program's environment.
func prepare(p plan.Plan) error {
	// The program inherits none of our descriptors, nor their locks.
	if err := unix.CloseRange(plan.PlanFD, ^uint(0)>>1, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return at("descriptors", err)
	}
	if p.Network {
		if err := loopback(); err != nil {
			return at("network", err)
		}
	}
	if p.Listen {
		if err := listen(p.ListenFD()); err != nil {
			return at("network", err)
		}
	}
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

// writeReport writes a report. An error has no recipient.
func writeReport(to *os.File, r plan.Report) { _, _ = to.Write(r.Line()) }

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
