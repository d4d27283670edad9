//go:build unix

package agentkit

import (
	"os"
	"path/filepath"
	"syscall"
)

// lockFD is the descriptor on which an agent inherits the lock that tells the
// engine whether it is alive.
const lockFD = 3

// keepLock keeps the lock from our own children: one that outlives the agent
// would hold it, and the thread would look busy for as long. Outside the engine
// descriptor 3 may be anything, so it is compared with the file first.
func keepLock(runDir string) {
	if runDir == "" {
		return
	}
	file, err := os.Stat(filepath.Join(runDir, "agent.lock"))
	if err != nil {
		return // no lock, nothing to keep
	}
	var open syscall.Stat_t
	if syscall.Fstat(lockFD, &open) != nil {
		return
	}
	if named, ok := file.Sys().(*syscall.Stat_t); ok && named.Dev == open.Dev && named.Ino == open.Ino {
		syscall.CloseOnExec(lockFD)
	}
}
