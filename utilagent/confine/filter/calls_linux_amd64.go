package filter

import "golang.org/x/sys/unix"

const arch = unix.AUDIT_ARCH_X86_64

// refusedHere lists refused calls that exist only on this architecture.
var refusedHere = []uint32{
	unix.SYS_CREATE_MODULE, unix.SYS_GET_KERNEL_SYMS, unix.SYS_QUERY_MODULE, unix.SYS_USELIB, unix.SYS__SYSCTL, unix.SYS_IOPL, unix.SYS_IOPERM,
	unix.SYS_MODIFY_LDT,
}

// here adds rules for legacy calls.
func (f *filter) here() {
	f.call(unix.SYS_CHMOD, argument{1, setIDs, anyOf})
	f.call(unix.SYS_CREAT, argument{1, setIDs, anyOf})
	f.call(unix.SYS_OPEN, argument{1, makes, noneOf}, argument{2, setIDs, anyOf})
	f.device(unix.SYS_MKNOD, 1)
}
