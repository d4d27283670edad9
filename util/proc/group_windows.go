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

// group is a child's job object, or the process alone if the child is not ours.
type group struct {
	pid uint32
	job windows.Handle // 0: not ours
}

// killedCode is the exit code of what is terminated.
const killedCode = 1

// startInGroup puts the child into a job. What it starts before that, in its
// first moments, is not in it.
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

// groupOf refuses the system's ids and our own.
func groupOf(pid int) (group, error) {
	if pid <= 4 || pid == os.Getpid() {
		return group{}, errors.New("is not a child")
	}
	return group{pid: uint32(pid)}, nil
}

// close lets the job go; what runs in it runs on.
func (g group) close() {
	if g.job != 0 {
		_ = windows.CloseHandle(g.job) // nothing can be done about it, nothing is lost
	}
}

// ask sends a break, which reaches the group only if it shares our console. That
// it does not is no error: the kill follows.
func (g group) ask(error) error {
	_ = windows.GenerateConsoleCtrlEvent(windows.CTRL_BREAK_EVENT, g.pid)
	return nil
}

// kill ends the whole job; of a child that is not ours only itself.
func (g group) kill() error {
	if g.job != 0 {
		return os.NewSyscallError("TerminateJobObject", windows.TerminateJobObject(g.job, killedCode))
	}
	h, err := windows.OpenProcess(windows.PROCESS_TERMINATE, false, g.pid)
	if errors.Is(err, windows.ERROR_INVALID_PARAMETER) {
		return nil // it has ended
	}
	if err != nil {
		return fmt.Errorf("terminate process %d: %w", g.pid, err)
	}
	return errors.Join(os.NewSyscallError("TerminateProcess", windows.TerminateProcess(h, killedCode)),
		windows.CloseHandle(h))
}

// killSession has nothing to add: what a job's processes start is in the job.
func (g group) killSession() error { return nil }

// gone reports whether nobody is left in the job.
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

// clear kills who is left.
func (g group) clear() error { return g.kill() }

// endSignal is always "": Windows has no signals.
func endSignal(*os.ProcessState) string { return "" }

// look tells nothing.
func look(int) stat { return stat{} }

// isPathKey: Windows folds the case of variables and usually writes "Path".
func isPathKey(key string) bool { return strings.EqualFold(key, "PATH") }

// homeVar names the user's own directory.
const homeVar = "USERPROFILE"

// Waited is the status that an exit status says.
func Waited(raw uint32) Status { return Status{Code: int(raw)} }
