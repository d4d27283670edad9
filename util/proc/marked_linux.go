package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"time"
)

// KillMarked kills every process, other than this one, that was started with the
// given entry (KEY=value) in its environment: children of a child that moved into
// groups and sessions of their own, and whose parents are gone. It returns how many
// there were, and does nothing on systems that do not show environments.
func KillMarked(entry string) (int, error) {
	killed := map[int]bool{} // who is dying is found again
	for scan := range scans {
		pids, err := processes()
		if err != nil {
			return len(killed), err
		}
		found, before := false, len(killed)
		for _, pid := range pids {
			switch err := killMarked(pid, entry); {
			case err == nil:
				found, killed[pid] = true, true
			case !errors.Is(err, os.ErrProcessDone):
				return len(killed), os.NewSyscallError("kill", err)
			}
		}
		if !found {
			break
		}
		if len(killed) == before { // they are dying; on a busy machine that takes a while
			time.Sleep(time.Millisecond << scan)
		}
	}
	return len(killed), nil
}

// killMarked kills a process that has the entry; [os.ErrProcessDone] if it has not.
func killMarked(pid int, entry string) error {
	if pid == os.Getpid() || !isMarked(pid, entry) {
		return os.ErrProcessDone
	}
	p, err := os.FindProcess(pid) // from here on its id cannot become another's
	if err != nil {
		return os.ErrProcessDone
	}
	defer func() { _ = p.Release() }() // it is not our child
	if !isMarked(pid, entry) {
		return os.ErrProcessDone
	}
	return p.Kill()
}

// isMarked reports whether a process has an entry; a zombie has no environment any more.
func isMarked(pid int, entry string) bool {
	environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return false // it has ended, or belongs to somebody else
	}
	for variable := range bytes.SplitSeq(environ, []byte{0}) {
		if string(variable) == entry {
			return true
		}
	}
	return false
}
