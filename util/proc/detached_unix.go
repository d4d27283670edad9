//go:build unix

package proc

import "syscall"

// apart makes a process independent of the terminal.
func apart() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }
