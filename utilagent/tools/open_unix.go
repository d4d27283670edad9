//go:build unix

package tools

import "syscall"

// openNonblock keeps the opening of a pipe from waiting for a writer.
const openNonblock = syscall.O_NONBLOCK
