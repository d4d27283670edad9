//go:build unix

package tools

import "syscall"

// openNonblock avoids waiting for a writer when a pipe is opened.
const openNonblock = syscall.O_NONBLOCK
