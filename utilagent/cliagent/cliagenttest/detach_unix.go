//go:build unix

package cliagenttest

import (
	"os/exec"
	"syscall"
)

// detach puts a child into a session of its own.
func detach(c *exec.Cmd) { c.SysProcAttr = &syscall.SysProcAttr{Setsid: true} }
