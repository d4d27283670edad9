//go:build unix

package proc

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// group is the id of a process group, which equals its leader's.
type group int

// killedWait is Wait's timeout for a child's killed children, so that they release inherited resources.
const killedWait = 500 * time.Millisecond

func startInGroup(cmd *exec.Cmd, c Command) (group, error) {
	cmd.ExtraFiles = c.Inherit
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: !c.Session, Setsid: c.Session}
	tie(cmd.SysProcAttr, c)
	if err := cmd.Start(); err != nil {
		return 0, err
	}
	if c.Session {
		keepNice(cmd.Process.Pid)
	}
	return group(cmd.Process.Pid), nil
}

var errNotAGroup = errors.New("is not the group of a child")

// groupOf rejects ids that refer to all processes or to ourselves.
func groupOf(pid int) (group, error) {
	if pid <= 1 || pid == syscall.Getpgrp() {
		return 0, errNotAGroup
	}
	return group(pid), nil
}

func (g group) close() {}

// signal sends the signal for the cause. It also continues the group, because a stopped process doesn't handle
// signals.
func (g group) signal(cause error) error {
	sig := syscall.SIGTERM
	if signal := (*SignalError)(nil); errors.As(cause, &signal) {
		if s, ok := signal.Signal.(syscall.Signal); ok {
			sig = s
		}
	}
	return errors.Join(g.sendAll(sig), g.sendAll(syscall.SIGCONT))
}

func (g group) kill() error { return g.sendAll(syscall.SIGKILL) }

// sendAll sends a signal to every process of the group. An empty group is not an error.
func (g group) sendAll(sig syscall.Signal) error {
	err := syscall.Kill(-int(g), sig)
	if err == nil || errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return fmt.Errorf("signal process group %d: %w", int(g), err)
}

// clear kills the remaining processes and waits briefly for them.
func (g group) clear() error {
	if g.gone() {
		return nil
	}
	if err := g.kill(); err != nil {
		return err
	}
	_, err := waitUntil(context.Background(), killedWait, g.gone)
	return err
}

// endSignal returns the name of the signal that terminated a process, or "".
func endSignal(state *os.ProcessState) string {
	if ws, ok := state.Sys().(syscall.WaitStatus); ok && ws.Signaled() {
		return ws.Signal().String()
	}
	return ""
}

// Waited converts a raw wait status.
func Waited(raw uint32) Status {
	status := syscall.WaitStatus(raw)
	if status.Signaled() {
		return Status{Code: -1, Signal: status.Signal().String()}
	}
	return Status{Code: status.ExitStatus()}
}

// apart makes a process independent of the terminal.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
