//go:build unix

package tools

import (
	"os"
	"syscall"
)

// shellPath prefers bash, because models write for it.
func shellPath() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return "/bin/sh"
}

func shellArgs(line string) []string { return []string{"-c", line} }

// directly returns the command that runs words without interpretation by a shell. A shell only finds the
// program in the PATH of the command's own environment.
func directly(words []string) (string, []string) {
	return "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, words...)
}

// openNonblock avoids waiting for a writer when a pipe is opened.
const openNonblock = syscall.O_NONBLOCK

// neededCapabilities returns the capabilities that root needs to write to a workspace owned by another user,
// such as a host directory in a container.
func neededCapabilities(workspace string) []string {
	info, err := os.Stat(workspace)
	if err != nil || os.Geteuid() != 0 {
		return nil
	}
	if stat, ok := info.Sys().(*syscall.Stat_t); ok && stat.Uid != 0 {
		return []string{"dac_override"}
	}
	return nil
}
