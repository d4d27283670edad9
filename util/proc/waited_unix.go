//go:build unix

package proc

import "syscall"

// Waited is the status that a wait status says.
func Waited(raw uint32) Status {
	status := syscall.WaitStatus(raw)
	if status.Signaled() {
		return Status{Code: -1, Signal: status.Signal().String()}
	}
	return Status{Code: status.ExitStatus()}
}
