package main

import (
	"os/exec"

	"github.com/united-workforce/uwf/util/env"
)

// become runs a program and exits with it. When its streams close, ssh exits.
func become(path string, args []string, e env.Env) error {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = e.Environ, e.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.Stdin, e.Stdout, e.Stderr
	return cmd.Run()
}
