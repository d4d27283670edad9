package proc

import (
	"syscall"

	"golang.org/x/sys/windows"
)

// apart makes a process independent of the console.
func apart() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{CreationFlags: windows.DETACHED_PROCESS | windows.CREATE_NEW_PROCESS_GROUP}
}
