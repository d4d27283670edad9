//go:build linux && (amd64 || arm64)

package filter

import (
	"fmt"
	"slices"
	"unsafe"

	"golang.org/x/sys/unix"
)

// What a filter sees of a system call: struct seccomp_data, whose numbers are
// little endian on our architectures. Of an argument only the lower half counts:
// those that are judged here are no longer in the kernel either.
const (
	offsetCall = 0
	offsetArch = 4
)

func offsetArg(n int) uint32 { return uint32(16 + 8*n) }

// The answers to a call.
const (
	allow  = unix.SECCOMP_RET_ALLOW
	kill   = unix.SECCOMP_RET_KILL_PROCESS
	refuse = unix.SECCOMP_RET_ERRNO | uint32(unix.EPERM)
	// unsupported is what a file system says that has no such thing.
	unsupported = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOTSUP)
	unknown     = unix.SECCOMP_RET_ERRNO | uint32(unix.ENOSYS) // the caller takes an older way
)

const (
	setIDs     = unix.S_ISUID | unix.S_ISGID
	makes      = unix.O_CREAT | unix.O_TMPFILE&^unix.O_DIRECTORY
	namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNET
)

// ioprioProcess is IOPRIO_WHO_PROCESS of linux/ioprio.h.
const ioprioProcess = 1

// newestCall is the last one that this list was made for. Later ones are answered
// as an older kernel would.
const newestCall = unix.SYS_RSEQ_SLICE_YIELD

// refusedCalls change the machine, or reach around Landlock and this filter.
// ptrace and process_vm_* are not among them: Landlock keeps them to the
// program's own processes, and debuggers and leak checkers need them there.
var refusedCalls = []uint32{
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_BPF, unix.SYS_PERF_EVENT_OPEN, unix.SYS_USERFAULTFD, unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD,
	unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD,
	unix.SYS_SETTIMEOFDAY, unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME,
	unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY, unix.SYS_KEYCTL, unix.SYS_OPEN_BY_HANDLE_AT, unix.SYS_FANOTIFY_INIT, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_NFSSERVCTL, unix.SYS_LOOKUP_DCOOKIE,
	unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, // what is asked through it is not filtered
}

// mountCalls change what is where.
var mountCalls = []uint32{
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_MOVE_MOUNT, unix.SYS_OPEN_TREE, unix.SYS_OPEN_TREE_ATTR,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR,
}

// sharedCalls reach the memory, queues and semaphores that System V's rules give to all
// programs of a user, and POSIX's queues.
var sharedCalls = []uint32{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SHMDT, unix.SYS_MSGGET, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MSGCTL,
	unix.SYS_SEMGET, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP, unix.SYS_SEMCTL, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// ownCalls change the process that their first argument names. Zero is the caller.
var ownCalls = []uint32{
	unix.SYS_PRLIMIT64, // a limit can end a process
	unix.SYS_SCHED_SETSCHEDULER, unix.SYS_SCHED_SETPARAM, unix.SYS_SCHED_SETATTR, unix.SYS_SCHED_SETAFFINITY,
}

// filter is a program for the kernel: seccomp with classic BPF.
type filter []unix.SockFilter

// New makes the filter of a program.
func New(r Rules) Filter {
	var f filter
	f.load(offsetArch)
	f.unless(unix.BPF_JEQ, arch, kill) // calls of another architecture have other numbers
	f.load(offsetCall)
	f.when(unix.BPF_JGT, newestCall, unknown) // x32 is there, too
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
	f.call(unix.SYS_SETPRIORITY, argument{0, ^uint32(0), anyOf}, argument{1, ^uint32(0), anyOf}) // of a process, not of a group or a user
	f.call(unix.SYS_IOPRIO_SET, argument{0, ^uint32(ioprioProcess), anyOf}, argument{1, ^uint32(0), anyOf})
	f.call(unix.SYS_IOCTL, argument{1, unix.TIOCSTI, equals}, argument{1, unix.TIOCLINUX, equals}) // they type into a terminal
	f.here()
	sockets := []argument{{0, unix.AF_VSOCK, equals}} // services of the machine around a virtual one
	if r.NoUnixSockets {
		sockets = append(sockets, argument{0, unix.AF_UNIX, equals})
	}
	f.call(unix.SYS_SOCKET, sockets...)
	if !r.Namespaces {
		f.when(unix.BPF_JEQ, unix.SYS_CLONE3, unknown) // its flags lie in memory
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

// when answers if a test of what is loaded holds.
func (f *filter) when(test uint16, k, answer uint32) {
	f.add(unix.BPF_JMP|test|unix.BPF_K, k, 0, 1)
	f.answer(answer)
}

// unless answers if it does not.
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

// The ways to compare.
const (
	anyOf  comparison = iota // of these bits some are set
	noneOf                   // the call is allowed, whatever comes after
	equals
)

// call judges a call by its arguments: it is refused if a test says so, else it
// is allowed.
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

// block runs instructions for one call; they have to answer it.
func (f *filter) block(call uint32, body filter) {
	f.add(unix.BPF_JMP|unix.BPF_JEQ|unix.BPF_K, call, 0, uint8(len(body)))
	*f = append(*f, body...)
}

// device refuses to make device files, and files with set-id bits.
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

// Filter can be put into force.
type Filter struct{ program filter }

// Install binds this thread. no_new_privs must be set.
func (f Filter) Install() error {
	program := unix.SockFprog{Len: uint16(len(f.program)), Filter: &f.program[0]}
	if _, _, failed := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&program))); failed != 0 {
		return fmt.Errorf("filter system calls: %w", failed)
	}
	return nil
}
