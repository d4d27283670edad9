package proc

import (
	"bytes"
	"errors"
	"os"
	"strconv"
	"syscall"
)

// KillMarked kills every process, other than this one, that was started with the
// given entry (KEY=value) in its environment: children of a child that moved into
// groups and sessions of their own, and whose parents are gone. It returns how many
// there were, and does nothing on systems that do not show environments.
func KillMarked(entry string) (int, error) {
	killed := map[int]bool{}
	for range scans {
		pids, err := marked(entry)
		if err != nil || len(pids) == 0 {
			return len(killed), err
		}
		for _, pid := range pids {
			if err := syscall.Kill(pid, syscall.SIGKILL); err != nil && !errors.Is(err, syscall.ESRCH) {
				return len(killed), os.NewSyscallError("kill", err)
			}
			killed[pid] = true
		}
	}
	return len(killed), nil
}

// marked lists the processes; a zombie has no environment any more.
func marked(entry string) ([]int, error) {
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var found []int
	for _, pid := range pids {
		environ, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
		if err != nil || pid == os.Getpid() {
			continue // it has ended, or belongs to somebody else
		}
		for variable := range bytes.SplitSeq(environ, []byte{0}) {
			if string(variable) == entry {
				found = append(found, pid)
				break
			}
		}
	}
	return found, nil
}
