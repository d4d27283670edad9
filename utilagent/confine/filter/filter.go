// Package filter refuses system calls to a program (seccomp): those that change the machine, or
// reach around what else holds the program back.
package filter

// Rules say which calls a program may make besides those that do no harm.
type Rules struct {
	// Shares: System V's memory, queues and semaphores, and POSIX's queues. They are all of a
	// user's programs' unless the program has an IPC namespace.
	Shares bool
	// Namespaces: new ones, and chroot, as programs with sandboxes of their own need them.
	Namespaces bool
	// Mounts: all calls that mount.
	Mounts bool
	// NoUnixSockets refuses to make any.
	NoUnixSockets bool
	// NoAttributes refuses to set extended attributes of files: file capabilities are such, and those
	// that a root with CAP_SETFCAP sets count outside of its namespaces, too.
	NoAttributes bool
}
