// Command peak runs a command, writes the most memory that it held, in bytes, into
// a file, and ends as it did: peak <file> <command…>. A parent of its own is
// needed, because until its execve a child counts as large as its parent is.
package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
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

func note(path string, state *os.ProcessState) error {
	bytes := peak(state)
	if bytes == 0 {
		return errors.New("this system does not tell how much memory a process held")
	}
	return os.WriteFile(path, []byte(strconv.FormatInt(bytes, 10)), 0o644)
}
