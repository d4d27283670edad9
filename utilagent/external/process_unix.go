//go:build unix

package external

import "syscall"

const terminate = syscall.SIGTERM
