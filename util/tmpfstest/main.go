// Package tmpfstest keeps the files of tests in memory, where the system has a tmpfs, so that tests don't
// wait for a disk. Durability is tested on simulated disks (util/durable/durabletest).
package tmpfstest

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
)

// Runner is a *testing.M, or wraps one.
type Runner interface{ Run() int }

// Main is for use in a TestMain: it runs the tests with their temporary directories in memory, and exits.
func Main(m Runner) { os.Exit(In(m).Run()) }

// In returns a Runner with its temporary directories in memory. Tests that sandbox programs need the disk,
// because sandboxed programs don't share memory.
func In(m Runner) Runner { return inMemory{m} }

type inMemory struct{ tests Runner }

// Run implements Runner.
func (m inMemory) Run() int {
	dir, held := room()
	if dir == "" {
		return m.tests.Run()
	}
	if err := os.Setenv("TMPDIR", dir); err != nil {
		panic(err)
	}
	status := m.tests.Run()
	if err := errors.Join(os.RemoveAll(dir), held.RemoveAndUnlock()); err != nil {
		panic(err)
	}
	return status
}

const (
	memory = "/dev/shm"
	prefix = "go-test-"
	locks  = ".lock" // next to each directory, held while its process runs
)

// room creates a directory in memory; "" if there is no suitable tmpfs. It removes directories of killed
// tests.
func room() (dir string, held *durable.Held) {
	if !suits(memory) {
		return "", nil
	}
	old, _ := filepath.Glob(filepath.Join(memory, prefix+"*"+locks)) // the pattern is valid
	for _, lock := range old {
		if held, err := durable.TryLock(lock); err == nil {
			_ = errors.Join(os.RemoveAll(strings.TrimSuffix(lock, locks)), held.RemoveAndUnlock()) // otherwise the next test does it
		}
	}
	dir = filepath.Join(memory, prefix+rand.Text())
	held, err := durable.TryLock(dir + locks)
	if err != nil {
		return "", nil
	}
	if err := os.Mkdir(dir, 0o711); err != nil {
		_ = held.RemoveAndUnlock()
		return "", nil
	}
	return dir, held
}
