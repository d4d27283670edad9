package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// endLeft kills the remaining processes that were started for an agent of this world and returns their IDs.
func (w *world) endLeft() ([]int, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var left []int
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("UWF_RUN_DIR="+w.home+"/")) {
			continue // it has exited, belongs to another user, or is a zombie
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		left = append(left, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have exited
	}
	return left, nil
}

// odd replaces a file by something else and describes it.
func odd(random *rand.Rand, path string) (what string, err error) {
	if err := os.Remove(path); err != nil {
		return "", err
	}
	switch random.IntN(6) {
	case 0:
		return "a pipe", syscall.Mkfifo(path, 0o600)
	case 1:
		return "a directory", os.MkdirAll(filepath.Join(path, "sub"), 0o700)
	case 2:
		return "a link to a device", os.Symlink("/dev/zero", path)
	case 3:
		return "a link to itself", os.Symlink(filepath.Base(path), path)
	case 4:
		return "nothing", nil
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return "", err
	}
	return "200 GB of nothing", os.Truncate(path, 200<<30)
}

// peak returns a process's peak memory in bytes, or 0 if unknown. Until its execve a process is a copy of
// this one, which the kernel counts: a figure no higher than our own means nothing.
func peak(state *os.ProcessState) int64 {
	usage, ok := state.SysUsage().(*syscall.Rusage)
	var own syscall.Rusage
	if !ok || syscall.Getrusage(syscall.RUSAGE_SELF, &own) != nil || usage.Maxrss <= own.Maxrss {
		return 0
	}
	return int64(usage.Maxrss) * 1024
}
