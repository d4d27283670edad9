package proc

import (
	"os/exec"
	"runtime"
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
}
