//go:build unix

package tools

import "os"

// shellPath is bash where there is one, because models write for it.
func shellPath() string {
	for _, path := range []string{"/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash"} {
		if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
			return path
		}
	}
	return "/bin/sh"
}

func shellArgs(line string) []string { return []string{"-c", line} }

// directly runs words without giving a shell anything to interpret. The shell
// only finds the program, on the PATH of the command's own environment.
func directly(words []string) (string, []string) {
	return "/bin/sh", append([]string{"-c", `exec "$@"`, "sh"}, words...)
}
