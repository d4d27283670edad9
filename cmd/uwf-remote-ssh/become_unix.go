//go:build !windows

package main

import (
	"fmt"
	"syscall"

	"github.com/united-workforce/uwf/util/env"
)

// become runs a program in the place of this one, so that nobody outlives the other.
func become(path string, args []string, e env.Env) error {
	err := syscall.Exec(path, append([]string{"ssh"}, args...), e.Environ)
	return fmt.Errorf("%s: %w", path, err)
}
