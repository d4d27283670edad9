package proc

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// Holders lists the processes, other than this one, that hold a lock on the file at
// path, as far as that can be known: elsewhere than on Linux it cannot.
func Holders(path string) []int {
	holders, err := lockHolders(path)
	if err != nil {
		return nil
	}
	return holders
}

// lockHolders lists the processes, other than this one, that hold a lock on the
// file at path. Those that only have it open, to wait for the lock, do not count.
// Processes that we may not look into are left out.
func lockHolders(path string) ([]int, error) {
	file, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	pids, err := processes()
	if err != nil {
		return nil, err
	}
	var holders []int
	for _, pid := range pids {
		if pid != os.Getpid() && holdsLock("/proc/"+strconv.Itoa(pid), file) {
			holders = append(holders, pid)
		}
	}
	return holders, nil
}

// holdsLock looks through the open files of a process. It may end meanwhile.
func holdsLock(process string, file fs.FileInfo) bool {
	fds, err := os.ReadDir(process + "/fd")
	if err != nil {
		return false
	}
	for _, fd := range fds {
		open, err := os.Stat(process + "/fd/" + fd.Name())
		if err != nil || !os.SameFile(open, file) {
			continue
		}
		info, err := os.ReadFile(process + "/fdinfo/" + fd.Name())
		if err == nil && bytes.Contains(info, []byte("\nlock:")) {
			return true
		}
	}
	return false
}

// signalHolders finds the holders again each time, so that nobody is signalled
// who no longer holds the lock.
func signalHolders(path string, hard bool) error {
	holders, err := lockHolders(path)
	if err != nil {
		return err
	}
	var errs []error
	for _, pid := range holders {
		errs = append(errs, signalHolder(pid, hard))
	}
	return errors.Join(errs...)
}

func signalHolder(pid int, hard bool) error {
	g, err := groupOf(pid)
	leads, _ := syscall.Getpgid(pid) // 0 if it has ended
	switch {
	case err != nil || leads != pid:
		return signalOne(pid, hard)
	case hard:
		return errors.Join(g.kill(), g.killSession())
	default:
		return g.ask(nil)
	}
}

func signalOne(pid int, hard bool) error {
	sig := syscall.SIGTERM
	if hard {
		sig = syscall.SIGKILL
	}
	err := errors.Join(syscall.Kill(pid, sig), syscall.Kill(pid, syscall.SIGCONT))
	if errors.Is(err, syscall.ESRCH) {
		return nil
	}
	return err
}
