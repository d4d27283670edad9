//go:build unix

package cliagenttest

import (
	"os/exec"
	"syscall"
)

// detach makes a child start a new session.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
