//go:build unix

// Command peak runs a command, writes the command's peak memory in bytes to a file, and exits with its
// status: peak <file> <command…>. It is a separate parent process because until its execve a child counts as
// large as its parent.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
)

func main() {
	if len(os.Args) < 3 {
		fmt.Fprintln(os.Stderr, "peak: want a file and a command")
		os.Exit(2)
	}
	cmd := exec.Command(os.Args[2], os.Args[3:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(1)
	}
	if err := note(os.Args[1], cmd.ProcessState); err != nil {
		fmt.Fprintln(os.Stderr, "peak:", err)
		os.Exit(1)
	}
	os.Exit(cmd.ProcessState.ExitCode())
}

// note writes a process's peak memory in bytes.
func note(file string, state *os.ProcessState) error {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	if !ok {
		return errors.New("this system does not tell how much memory a process held")
	}
	bytes := int64(usage.Maxrss)
	if runtime.GOOS != "darwin" {
		bytes *= 1024
	}
	return os.WriteFile(file, fmt.Append(nil, bytes), 0o644)
}
