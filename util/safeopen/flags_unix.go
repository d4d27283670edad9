//go:build unix

package safeopen

import "syscall"

const (
	// openNonblock keeps the opening of a pipe from waiting for its other end, and
	// that of a terminal from making it ours.
	openNonblock = syscall.O_NONBLOCK | syscall.O_NOCTTY
	openNoFollow = syscall.O_NOFOLLOW
)
