//go:build !linux

package proc

import (
	"errors"
	"os/exec"
)

// Adopt makes this process the parent of what its children leave behind. False: only
// Linux can do that.
func Adopt() bool { return false }

// Children are the ids of the processes whose parent is this one, where the system
// tells: only Linux does.
func Children() []int { return nil }

// KillChildren kills all children of this process but some, where [Adopt] works.
func KillChildren([]int) (int, error) { return 0, nil }

func (b *Box) start(Command) (*Child, error) {
	return nil, &BoxError{Stage: "namespaces", Err: errors.ErrUnsupported}
}

// Holders finds nobody: this system does not show who holds a lock.
func Holders(string) []int { return nil }

// lockHolders finds nobody: this system does not show who holds a lock.
func lockHolders(string) ([]int, error) { return nil, nil }

// signalHolders has nobody to signal.
func signalHolders(string, bool) error { return nil }

// KillMarked kills every process that was started with the given entry in its
// environment, and returns how many there were, where the system shows that: only
// Linux does.
func KillMarked(string) (int, error) { return 0, nil }

func startInit(c Command) (*Child, error) {
	c.Init = false
	return Start(c)
}

func startTied(cmd *exec.Cmd, c Command) (group, func(), error) {
	g, err := startInGroup(cmd, c)
	return g, func() {}, err
}
