package confine

import (
	"runtime"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Level returns the Landlock ABI version of the kernel, or 0.
func Level() int {
	version, _, failed := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if failed != 0 {
		return 0
	}
	return int(version)
}

// Seccomp reports whether system calls can be filtered: the kernel supports it, and this package knows the
// architecture's call numbers.
func Seccomp() bool {
	if runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		return false
	}
	action := uint32(unix.SECCOMP_RET_ERRNO)
	_, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_GET_ACTION_AVAIL, 0, uintptr(unsafe.Pointer(&action)))
	return failed == 0
}
