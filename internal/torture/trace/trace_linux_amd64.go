package trace

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/durable/durabletest"
)

// run implements Run. A tracer is a thread, not a process, so everything happens on one thread.
func run(cmd *exec.Cmd, plan Plan) (Outcome, error) {
	type result struct {
		out Outcome
		err error
	}
	done := make(chan result, 1)
	go onFreshThread(func() {
		out, err := onThread(cmd, plan)
		done <- result{out, err}
	})
	r := <-done
	return r.out, r.err
}

// onFreshThread calls do on a thread without children, and ends the thread. A thread that has started
// programs for other goroutines would reap them here.
func onFreshThread(do func()) {
	runtime.LockOSThread() // never unlocked: the thread ends with the goroutine
	children, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/children", unix.Gettid()))
	if err != nil || len(children) == 0 {
		do()
		return
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		onFreshThread(do)
	}()
	<-done // this thread stays locked, so do gets another one
}

// onThread starts the program, which stops at its execve, and follows it.
func onThread(cmd *exec.Cmd, plan Plan) (Outcome, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Ptrace = true
	if err := cmd.Start(); err != nil {
		return Outcome{}, err
	}
	t := &tracer{plan: plan, root: cmd.Process.Pid, calls: changing(), threads: map[int]*thread{}}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(t.root, &status, 0, nil); err != nil {
		return Outcome{}, fmt.Errorf("wait for the program: %w", err)
	}
	const follow = unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK |
		unix.PTRACE_O_TRACEVFORK | unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_EXITKILL
	if err := syscall.PtraceSetOptions(t.root, follow); err != nil {
		return Outcome{}, fmt.Errorf("trace: %w", err)
	}
	t.stdout = descriptor(t.root, 1)
	t.thread(t.root).begun = true
	err := t.resume(t.root, 0)
	if err == nil {
		err = t.follow()
	}
	if err != nil {
		t.abandon()
	}
	// Copying the output ends when all processes with the pipes have ended. Wait reports that the process no
	// longer exists, as expected.
	if waitErr := cmd.Wait(); waitErr != nil && !errors.Is(waitErr, syscall.ECHILD) {
		err = errors.Join(err, waitErr)
	}
	return t.out, err
}

// tracer follows a program and its descendants.
type tracer struct {
	plan    Plan
	root    int
	stdout  string // file of the program's stdout
	calls   map[uint64]call
	threads map[int]*thread
	out     Outcome
}

// thread is a traced thread.
type thread struct {
	begun  bool // it has passed its first stop
	inside bool // a system call is in progress
	fail   syscall.Errno
	kill   bool            // kill it after the call
	call   *begun          // the call in progress, if it counts
	change *durabletest.Op // its change, if recorded
}

func (t *tracer) thread(tid int) *thread {
	if t.threads[tid] == nil {
		t.threads[tid] = &thread{}
	}
	return t.threads[tid]
}

// follow handles stops until no traced process is left.
func (t *tracer) follow() error {
	for {
		var status syscall.WaitStatus
		tid, err := syscall.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		switch {
		case errors.Is(err, syscall.EINTR):
			continue
		case errors.Is(err, syscall.ECHILD):
			return nil
		case err != nil:
			return fmt.Errorf("wait: %w", err)
		}
		if status.Exited() || status.Signaled() {
			delete(t.threads, tid)
			if tid == t.root {
				t.ended(status)
			}
			continue
		}
		if err := t.stopped(tid, status); err != nil && !errors.Is(err, syscall.ESRCH) {
			return err
		}
	}
}

func (t *tracer) ended(status syscall.WaitStatus) {
	t.out.Code = status.ExitStatus()
	if status.Signaled() {
		t.out.Signal = status.Signal().String()
	}
}

// stopped handles one stop and resumes the thread.
func (t *tracer) stopped(tid int, status syscall.WaitStatus) error {
	th, signal := t.thread(tid), status.StopSignal()
	switch {
	case signal == syscall.SIGTRAP|0x80:
		if err := t.atCall(tid, th); err != nil {
			return err
		}
		signal = 0
	case signal == syscall.SIGTRAP:
		signal = 0 // an event: clone, fork, exec
	case signal == syscall.SIGSTOP && !th.begun:
		signal = 0 // the first stop of a new thread
	}
	th.begun = true
	return t.resume(tid, int(signal))
}

func (t *tracer) resume(tid, signal int) error { return syscall.PtraceSyscall(tid, signal) }

// atCall handles the start or end of a system call.
func (t *tracer) atCall(tid int, th *thread) error {
	var regs syscall.PtraceRegs
	if err := syscall.PtraceGetRegs(tid, &regs); err != nil {
		return err
	}
	th.inside = !th.inside
	if !th.inside {
		return t.afterCall(tid, th, &regs)
	}
	b := t.begin(tid, &regs)
	if b == nil || t.plan.Own && processOf(tid) != t.root {
		return nil
	}
	t.out.Calls++
	if b.path == t.stdout {
		t.out.Told = len(t.out.Ops)
	}
	if t.plan.Record {
		var err error
		th.call = b
		th.change, err = t.change(b)
		return err
	}
	switch past := t.out.Calls - t.plan.At; {
	case t.plan.Fault == None || past < 0 || past > 0 && !t.plan.Fault.lasts():
		return nil
	case t.plan.Fault.lasts() && b.tells():
		return nil // a full disk does not prevent reporting it
	}
	if !t.out.WasHit {
		t.out.Hit, t.out.WasHit = Call{Process: processOf(tid), Name: b.name, Path: b.path}, true
	}
	return t.inject(tid, th, b)
}

// afterCall handles the end of a system call.
func (t *tracer) afterCall(tid int, th *thread, regs *syscall.PtraceRegs) error {
	if op := th.change; op != nil {
		th.change = nil
		return t.record(tid, th.call, op, int64(regs.Rax))
	}
	if th.kill {
		return syscall.Kill(t.out.Hit.Process, syscall.SIGKILL)
	}
	if th.fail == 0 {
		return nil
	}
	regs.Rax = uint64(-int64(th.fail))
	th.fail = 0
	return syscall.PtraceSetRegs(tid, regs)
}

// record records the change of a successful call.
func (t *tracer) record(tid int, b *begun, op *durabletest.Op, result int64) (err error) {
	if result < 0 {
		return nil
	}
	if b.name == "write" {
		if op.Data, err = bytesAt(tid, b.regs.Rsi, result); err != nil {
			return fmt.Errorf("read what was written to %s: %w", op.Path, err)
		}
	}
	t.out.Ops = append(t.out.Ops, *op)
	return nil
}

// inject injects the fault into the call that has just begun.
func (t *tracer) inject(tid int, th *thread, b *begun) error {
	regs := b.regs
	switch t.plan.Fault {
	case Kill:
		return syscall.Kill(t.out.Hit.Process, syscall.SIGKILL)
	case KillAll:
		t.killAll()
		return nil
	case Short, Torn:
		if b.name != "write" && b.name != "pwrite64" || regs.Rdx < 2 {
			return nil
		}
		regs.Rdx /= 2
		th.kill = t.plan.Fault == Torn
		return syscall.PtraceSetRegs(tid, &regs)
	case EIO:
		th.fail = syscall.EIO
	case ENOSPC:
		th.fail = syscall.ENOSPC
	case EROFS:
		th.fail = syscall.EROFS
	case EINTR:
		th.fail = syscall.EINTR
	}
	regs.Orig_rax = ^uint64(0) // an invalid call, which changes nothing
	return syscall.PtraceSetRegs(tid, &regs)
}

// abandon kills everything after an error. A traced thread is gone only after its tracer has seen that.
func (t *tracer) abandon() {
	t.killAll()
	for {
		var status syscall.WaitStatus
		_, err := syscall.Wait4(-1, &status, unix.WALL|unix.WNOTHREAD, nil)
		if err != nil && !errors.Is(err, syscall.EINTR) {
			return
		}
	}
}

// killAll kills every traced process.
func (t *tracer) killAll() {
	killed := map[int]bool{}
	for tid := range t.threads {
		if p := processOf(tid); p != 0 && !killed[p] {
			killed[p] = true
			_ = syscall.Kill(p, syscall.SIGKILL) // it may have exited
		}
	}
}
