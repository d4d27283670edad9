//go:build !unix

package tools

import (
	"os/exec"
)

func shellPath() string {
	if path, err := exec.LookPath("cmd.exe"); err == nil {
		return path
	}
	return "cmd.exe"
}

func shellArgs(line string) []string { return []string{"/d", "/c", line} }

// directly returns the command that runs words without a shell.
func directly(words []string) (string, []string) {
	path, err := exec.LookPath(words[0])
	if err != nil {
		path = words[0] // starting it reports the error
	}
	return path, words[1:]
}

// openNonblock is not needed on this platform.
const openNonblock = 0

func neededCapabilities(string) []string { return nil }
