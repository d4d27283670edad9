package proc

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/windows"
)

// group is a child's job object, or only the process if it isn't our child.
type group struct {
	pid uint32
	job windows.Handle // 0 if it isn't our child
}

// killedCode is the exit code of terminated processes.
const killedCode = 1

// startInGroup adds the child to a job. Processes that it starts before that aren't in the job.
func startInGroup(cmd *exec.Cmd, c Command) (group, error) {
	attr := &syscall.SysProcAttr{CreationFlags: windows.CREATE_NEW_PROCESS_GROUP}
	if c.Session {
		attr.CreationFlags |= windows.CREATE_NO_WINDOW
	}
	for _, f := range c.Inherit {
		h := syscall.Handle(f.Fd())
		if err := syscall.SetHandleInformation(h, syscall.HANDLE_FLAG_INHERIT, syscall.HANDLE_FLAG_INHERIT); err != nil {
			return group{}, os.NewSyscallError("SetHandleInformation", err)
		}
		attr.AdditionalInheritedHandles = append(attr.AdditionalInheritedHandles, h)
	}
	cmd.SysProcAttr = attr
	job, err := windows.CreateJobObject(nil, nil)
	if err != nil {
		return group{}, os.NewSyscallError("CreateJobObject", err)
	}
	if err := cmd.Start(); err != nil {
		return group{}, errors.Join(err, windows.CloseHandle(job))
	}
	g := group{pid: uint32(cmd.Process.Pid), job: job}
	if err := g.assign(); err != nil {
		return group{}, errors.Join(err, cmd.Process.Kill(), cmd.Wait(), windows.CloseHandle(job))
	}
	return g, nil
}

func (g group) assign() error {
	const access = windows.PROCESS_SET_QUOTA | windows.PROCESS_TERMINATE
	h, err := windows.OpenProcess(access, false, g.pid)
	if err != nil {
		return os.NewSyscallError("OpenProcess", err)
	}
	return errors.Join(os.NewSyscallError("AssignProcessToJobObject", windows.AssignProcessToJobObject(g.job, h)),
		windows.CloseHandle(h))
}

// groupOf rejects the system's ids and our own.
func groupOf(pid int) (group, error) {
	if pid <= 4 || pid == os.Getpid() {
		return group{}, errors.New("is not a child")
	}
	return group{pid: uint32(pid)}, nil
}

// close releases the job; its processes keep running.
func (g group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job) // the error has no effect
	}
}

// signal sends a break event, which reaches the group only if it shares our console. Failure isn't an error,
// because the kill follows.
func (g group) signal(error) error {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid)
	return nil
}

// kill terminates the whole job, or only the process if it isn't our child.
func (g group) kill() error {
	if g.job != 0 {
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(g.job, killedCode))
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, g.pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // it has exited
	}
	if err != nil {
		return fmt.Errorf("terminate process %d: %w", g.pid, err)
	}
	return errors.Join(os.NewSyscallError("TerminateProcess", windows.TerminateProcess(h, killedCode)),
		windows.CloseHandle(h))
}

// killSession does nothing, because the job contains all descendants.
func (g group) killSession() error { return nil }

// gone reports whether the job has no processes left.
func (g group) gone() bool {
	var info struct {
		TotalUserTime, TotalKernelTime, ThisPeriodUserTime, ThisPeriodKernelTime int64
		TotalPageFaults, TotalProcesses, ActiveProcesses, TerminatedProcesses    uint32
	}
	const basicAccounting = 1
	err := windows.QueryInformationJobObject(g.job, basicAccounting, uintptr(unsafe.Pointer(&info)),
		uint32(unsafe.Sizeof(info)), nil)
	return err == nil && info.ActiveProcesses == 0
}

// clear kills the remaining processes.
func (g group) clear() error { return g.kill() }

// endSignal always returns "", because Windows has no signals.
func endSignal(*os.ProcessState) string { return "" }

// look isn't implemented on Windows.
func look(int) stat { return stat{} }

// isPathKey ignores case, as Windows does; the variable is usually spelled "Path".
func isPathKey(key string) bool { return strings.EqualFold(key, "PATH") }

// homeVar is the environment variable with the user's home directory.
const homeVar = "USERPROFILE"

// Waited converts a raw exit status.
func Waited(raw uint32) Status { return Status{Code: int(raw)} }

// apart makes a process independent of the console.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
