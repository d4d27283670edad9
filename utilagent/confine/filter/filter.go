// Package filter refuses system calls with seccomp: those that change the machine or circumvent the program's
// other restrictions.
package filter

// Rules lists the calls that a program may make in addition to harmless ones.
type Rules struct {
	// Shares allows System V shared memory, queues and semaphores, and POSIX queues. All programs of a user
	// share them, unless the program has an IPC namespace.
	Shares bool
	// Namespaces allows creating namespaces, and chroot, for programs with their own sandboxes.
	Namespaces bool
	// Mounts allows all mount calls.
	Mounts bool
	// NoUnixSockets refuses creating Unix sockets.
	NoUnixSockets bool
	// NoAttributes refuses setting extended attributes of files. File capabilities are stored in them, and
	// those set by a namespace root with CAP_SETFCAP are valid outside as well.
	NoAttributes bool
}
