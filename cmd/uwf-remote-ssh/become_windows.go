package main

import (
	"os"
	"os/exec"

	"github.com/united-workforce/uwf/util/env"
)

// become runs a program, and ends as it does: when its streams end, so does ssh.
func become(path string, args []string, e env.Env) error {
	cmd := exec.Command(path, args...)
	cmd.Env, cmd.Dir = e.Environ, e.Dir
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	if cmd.ProcessState != nil {
		os.Exit(cmd.ProcessState.ExitCode())
	}
	return err
}
