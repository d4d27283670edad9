//go:build linux && (amd64 || arm64)

package filter

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Offsets in struct seccomp_data, the filter's view of a system call. Our architectures are little-endian.
// Only the lower half of an argument matters, because the kernel truncates the arguments examined here to
// that size.
const (
	offsetCall = 0
	offsetArch = 4
)

func offsetArg(n int) uint32 { return uint32(16 + 8*n) }

// Filter results.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// unsupported is the error of a file system without the feature.
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTSUP)
	unknown     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // the caller falls back to an older call
)

const (
	setIDs     = unix.S_ISUID | unix.S_ISGID
	makes      = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// ioprioProcess is IOPRIO_WHO_PROCESS of linux/ioprio.h.
const ioprioProcess = 1

// newestCall is the latest call that this list covers. Later ones fail as on an older kernel.
const newestCall = unix.SYS_RSEQ_SLICE_YIELD

// refusedCalls change the machine, or circumvent Landlock and this filter. ptrace and process_vm_* are
// allowed: Landlock restricts them to the program's own processes, and debuggers and leak checkers need them
// there.
var refusedCalls = []uint32{
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // operations submitted through it are not filtered
}

// mountCalls change the mount tree.
var mountCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
}

// sharedCalls access System V shared memory, queues and semaphores, which all programs of a user share, and
// POSIX queues.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// ownCalls affect the process in their first argument. Zero means the caller.
var ownCalls = []uint32{
	unix.SYS_PRLIMIT64, // a limit can kill a process
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
}

// filter is a classic BPF program for seccomp.
type filter []unix.SockFilter

// New returns the filter for a program.
func New(r Rules) Filter {
	var f filter
	f.load(offsetArch)
	f.unless(unix.BPF_JEQ, arch, kill) // call numbers of other architectures differ
	f.load(offsetCall)
	f.when(unix.BPF_JGT, newestCall, unknown) // includes the x32 calls
	refused := slices.Concat(refusedCalls, refusedHere)
	if !r.Shares {
		refused = append(refused, sharedCalls...)
	}
	if !r.Mounts {
		refused = append(refused, mountCalls...)
	}
	for _, call := range refused {
		f.when(unix.BPF_JEQ, call, refuse)
	}
	if r.NoAttributes {
		for _, call := range []uint32{unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_SETXATTRAT} {
			f.when(unix.BPF_JEQ, call, unsupported)
		}
	}
	f.when(unix.BPF_JEQ, unix.SYS_OPENAT2, unknown) // its mode is in memory

	f.call(unix.SYS_FCHMOD, argument{1, setIDs, anyOf})
	for _, call := range []uint32{unix.SYS_FCHMODAT, unix.SYS_FCHMODAT2} {
		f.call(call, argument{2, setIDs, anyOf})
	}
	f.call(unix.SYS_OPENAT, argument{2, makes, noneOf}, argument{3, setIDs, anyOf})
	f.device(unix.SYS_MKNODAT, 2)
	for _, call := range ownCalls {
		f.call(call, argument{0, ^uint32(0), anyOf})
	}
	f.call(unix.SYS_SETPRIORITY, argument{0, ^uint32(0), anyOf}, argument{1, ^uint32(0), anyOf}) // for a process, not for a group or a user
	f.call(unix.SYS_IOPRIO_SET, argument{0, ^uint32(ioprioProcess), anyOf}, argument{1, ^uint32(0), anyOf})
	f.call(unix.SYS_IOCTL, argument{1, unix.TIOCSTI, equals}, argument{1, unix.TIOCLINUX, equals}) // inject input into a terminal
	f.here()
	sockets := []argument{{0, unix.AF_VSOCK, equals}} // services of a virtual machine's host
	if r.NoUnixSockets {
		sockets = append(sockets, argument{0, unix.AF_UNIX, equals})
	}
	f.call(unix.SYS_SOCKET, sockets...)
	if !r.Namespaces {
		f.when(unix.BPF_JEQ, unix.SYS_CLONE3, unknown) // its flags are in memory
		f.when(unix.BPF_JEQ, unix.SYS_SETNS, refuse)
		f.when(unix.BPF_JEQ, unix.SYS_CHROOT, refuse)
		f.call(unix.SYS_CLONE, argument{0, namespaces, anyOf})
		f.call(unix.SYS_UNSHARE, argument{0, namespaces | unix.CLONE_NEWTIME, anyOf})
	}
	f.answer(allow)
	return Filter{f}
}

func (f *filter) add(code uint16, k uint32, yes, no uint8) {
	*f = append(*f, unix.SockFilter{Code: code, K: k, Jt: yes, Jf: no})
}

func (f *filter) load(offset uint32)   { f.add(unix.BPF_LD|unix.BPF_W|unix.BPF_ABS, offset, 0, 0) }
func (f *filter) answer(answer uint32) { f.add(unix.BPF_RET|unix.BPF_K, answer, 0, 0) }

// when returns answer if a test of the loaded value holds.
func (f *filter) when(test uint16, k, answer uint32) {
	f.add(unix.BPF_JMP|test|unix.BPF_K, k, 0, 1)
	f.answer(answer)
}

// unless returns answer if a test does not hold.
func (f *filter) unless(test uint16, k, answer uint32) {
	f.add(unix.BPF_JMP|test|unix.BPF_K, k, 1, 0)
	f.answer(answer)
}

// argument is a test of one argument of a call.
type argument struct {
	n     int
	value uint32
	how   comparison
}

type comparison int

// Comparisons.
const (
	anyOf  comparison = iota // some of these bits are set
	noneOf                   // allows the call, whatever follows
	equals
)

// call adds a rule for a call: it is refused if a test holds, and otherwise allowed.
func (f *filter) call(call uint32, tests ...argument) {
	var body filter
	for _, t := range tests {
		body.load(offsetArg(t.n))
		switch t.how {
		case anyOf:
			body.when(unix.BPF_JSET, t.value, refuse)
		case noneOf:
			body.unless(unix.BPF_JSET, t.value, allow)
		case equals:
			body.when(unix.BPF_JEQ, t.value, refuse)
		}
	}
	body.answer(allow)
	f.block(call, body)
}

// block runs instructions for one call. They must return a result.
func (f *filter) block(call uint32, body filter) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, 0, uint8(len(body)))
	*f = append(*f, body...)
}

// device refuses creating device files and files with set-ID bits.
func (f *filter) device(call uint32, mode int) {
	var body filter
	body.load(offsetArg(mode))
	body.when(unix.BPF_JSET, setIDs, refuse)
	body.add(unix.BPF_ALU|unix.BPF_AND|unix.BPF_K, unix.S_IFMT, 0, 0)
	body.when(unix.BPF_JEQ, unix.S_IFCHR, refuse)
	body.when(unix.BPF_JEQ, unix.S_IFBLK, refuse)
	body.answer(allow)
	f.block(call, body)
}

// Filter is a seccomp filter ready to install.
type Filter struct{ program filter }

// Install applies the filter to this thread. no_new_privs must be set.
func (f Filter) Install() error {
	program := unix.SockFprog{Len: uint16(len(f.program)), Filter: &f.program[0]}
	if _, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); failed != 0 {
		return fmt.Errorf("filter system calls: %w", failed)
	}
	return nil
}
