package inside

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/united-workforce/uwf/util/proc/plan"
)

// start starts the program in a process group of its own, which gets the signals that we get.
func start(p plan.Plan) (pid int, err error) {
	signals := make(chan os.Signal, 16)
	for s := syscall.Signal(1); s <= unix.SIGSYS; s++ {
		if s != unix.SIGCHLD && s != unix.SIGURG && !signal.Ignored(s) { // SIGURG is the runtime's own
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
