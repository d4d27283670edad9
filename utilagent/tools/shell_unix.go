//go:build unix

package tools

import "os"

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
