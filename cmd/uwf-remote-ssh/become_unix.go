//go:build !windows

package main

import (
	"fmt"
	"syscall"

	"github.com/united-workforce/uwf/util/env"
)

// become replaces this process with a program, so that neither outlives the other.
func become(path string, args []string, e env.Env) error {
	err := syscall.Exec(path, append([]string{"ssh"}, args...), e.Environ)
	return fmt.Errorf("%s: %w", path, err)
}
