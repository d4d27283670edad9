//go:build unix

package cliagent

import "syscall"

const terminate = syscall.SIGTERM
