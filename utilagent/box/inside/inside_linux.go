// Package inside is uwf-box: the first process in the namespaces of a program that is held back.
// It puts together what the program sees, gives up its own rights, runs the program, and ends
// with it; then the kernel ends all that the program has started.
//
//   - inside_linux.go: the order of it all, and the program's run;
//   - mounts_linux.go: what the program sees;
//   - rights_linux.go: Landlock and the capabilities, which are a second wall, and the network.
package inside

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
	"github.com/united-workforce/uwf/utilagent/confine/filter"
)

// maxPlan bounds the plan, in bytes.
const maxPlan = 64 << 20

// stageError is why a program was not started.
type stageError struct {
	stage string
	err   error
}

// Error implements error.
func (e *stageError) Error() string { return e.stage + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e *stageError) Unwrap() error { return e.err }

func at(stage string, err error) error {
	if err == nil {
		return nil
	}
	return &stageError{stage, err}
}

// Main runs the plan that it is given and returns the exit status of this process.
func Main(stderr io.Writer) int {
	if os.Getpid() != 1 {
		fmt.Fprintln(stderr, "uwf-box runs programs for uwf, which starts it: there is nothing to type here. "+
			"uwf doctor says whether it works. plan version "+plan.Version)
		return plan.Failed
	}
	runtime.LockOSThread() // rights are a thread's, and the program gets this one's
	report := os.NewFile(plan.ReportFD, "report")
	p, err := read(os.NewFile(plan.PlanFD, "plan"))
	if err == nil {
		err = prepare(p)
	}
	pid := 0
	if err == nil && p.Path != "" {
		pid, err = start(p)
	}
	if err != nil {
		say(report, failure(err))
		return plan.Failed
	}
	say(report, plan.Report{Started: plan.Version})
	if p.Path == "" {
		return 0
	}
	status, err := wait(pid)
	if err != nil {
		return plan.Failed
	}
	raw := uint32(status)
	say(report, plan.Report{Ended: &raw})
	if p.Status {
		say(os.NewFile(plan.StatusFD, "status"), plan.Report{Ended: &raw})
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
		return p, at("version", fmt.Errorf("uwf has plans of version %q, uwf-box knows %q: install both from one release", p.Version, plan.Version))
	}
	return p, nil
}

// prepare makes this process what the program is to be.
func prepare(p plan.Plan) error {
	// The program gets none of our descriptors, nor what they hold, such as locks.
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
	mask := unix.Umask(0) // what is made here has the mode that it is given
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
		p.Keep |= 1 << unix.CAP_SETFCAP // else it could not be root in a namespace of its own
	}
	if err := dropCapabilities(p.Keep); err != nil {
		return at("capabilities", err)
	}
	calls := filter.New(filter.Rules{Shares: true, Namespaces: p.Nest, Mounts: p.Nest, NoUnixSockets: p.NoUnixSockets, NoAttributes: p.Keep&(1<<unix.CAP_SETFCAP) != 0})
	if err := calls.Install(); err != nil {
		return at("seccomp", err)
	}
	// The program runs as the same user: it must not trace us, nor take our descriptors.
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

// say cannot fail in a way that somebody could be told of.
func say(to *os.File, r plan.Report) {
	if text, err := json.Marshal(r); err == nil {
		_, _ = to.Write(append(text, '\n'))
	}
}

// start starts the program in a process group of its own, which gets the signals that we get.
func start(p plan.Plan) (pid int, err error) {
	signals := make(chan os.Signal, 16)
	own := []syscall.Signal{unix.SIGCHLD, unix.SIGURG, unix.SIGPIPE} // the runtime's, and of a report that nobody reads
	for s := syscall.Signal(1); s <= unix.SIGSYS; s++ {
		if !slices.Contains(own, s) && !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
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
				_ = syscall.Kill(-pid, s) // it may have ended
			}
		}
	}()
	// Who waits for the end of what it prints does not wait for us.
	return pid, errors.Join(syscall.Close(0), syscall.Close(1), syscall.Close(2))
}

// wait returns how the program ended. What it has left behind becomes our child meanwhile.
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
