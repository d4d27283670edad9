package tools

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
)

// maxSweeps bounds how often leftovers are looked for: what starts others faster
// than it is killed is not our work to win against.
const maxSweeps = 20

// killLeftovers kills what a command has started and what has left its process
// group: everything that has the command's mark in its environment.
func killLeftovers(mark string) {
	for range maxSweeps {
		if !sweep([]byte(mark)) {
			return
		}
	}
}

// sweep kills what it finds, and tells whether there was anything.
func sweep(mark []byte) (found bool) {
	processes, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return false
	}
	for _, name := range processes {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if err != nil || pid == os.Getpid() {
			continue
		}
		p, err := os.FindProcess(pid) // from here on its id cannot become another's
		if err != nil {
			continue
		}
		if environ, err := os.ReadFile(name); err == nil && hasLine(environ, mark) {
			found = p.Kill() == nil || found
		}
		_ = p.Release() // it is not our child
	}
	return found
}

// hasLine tells whether an environment has a whole entry.
func hasLine(environ, entry []byte) bool {
	return bytes.HasPrefix(environ, append(entry[:len(entry):len(entry)], 0)) ||
		bytes.Contains(environ, append(append([]byte{0}, entry...), 0))
}
