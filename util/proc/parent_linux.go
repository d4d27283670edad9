package proc

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"syscall"
)

// startTied starts a child that is asked to end when this process dies. The
// kernel takes the end of the thread that has started it for that, so the thread
// stays until release is called.
func startTied(cmd *exec.Cmd, c Command) (g group, release func(), err error) {
	started, over := make(chan struct{}), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		g, err = startInGroup(cmd, c)
		close(started)
		if err == nil {
			<-over
		}
	}()
	<-started
	return g, func() { close(over) }, err
}

func tie(a *syscall.SysProcAttr, c Command) {
	if c.WithParent {
		a.Pdeathsig = syscall.SIGTERM
	}
	if c.namespaces != nil {
		c.namespaces(a)
	}
}

// keepNice gives the session of a child the niceness that this process has. Where the
// kernel shares the processor among sessions first, the niceness that a child
// inherits counts only within its own. If it fails, the child is only faster.
func keepNice(pid int) {
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	if nice := 20 - raw; err == nil && nice > 0 { // the system call counts down
		_ = os.WriteFile(fmt.Sprintf("/proc/%d/autogroup", pid), []byte(strconv.Itoa(nice)), 0)
	}
}
