package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// endLeft kills the processes that were started for an agent of this world and
// still live, and returns their ids.
func (w *world) endLeft() ([]int, error) {
	environs, err := filepath.Glob("/proc/[0-9]*/environ")
	if err != nil {
		return nil, err
	}
	var left []int
	for _, path := range environs {
		environ, err := os.ReadFile(path)
		if err != nil || !bytes.Contains(environ, []byte("UWF_RUN_DIR="+w.home+"/")) {
			continue // it has ended, belongs to somebody else, or is a zombie
		}
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil {
			return nil, err
		}
		left = append(left, pid)
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended by itself
	}
	return left, nil
}
