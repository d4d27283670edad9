package plan

import (
	"syscall"

	"golang.org/x/sys/unix"
)

// Namespaces returns the attributes of a process that becomes uwf-box in its own namespaces. It loses all capabilities but
// these when uwf-box starts, unless root is mapped before.
func Namespaces(network bool) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC}
	if network {
		a.Cloneflags |= unix.CLONE_NEWNET
	}
	a.AmbientCaps = []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_NET_ADMIN, unix.CAP_SETPCAP,
		unix.CAP_DAC_OVERRIDE, unix.CAP_DAC_READ_SEARCH, unix.CAP_FOWNER, unix.CAP_CHOWN,
		unix.CAP_FSETID, unix.CAP_NET_BIND_SERVICE, unix.CAP_NET_RAW, unix.CAP_SETFCAP, // root's program may keep them
	}
	return a
}
