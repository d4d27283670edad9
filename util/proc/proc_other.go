//go:build !linux

package proc

import (
	"errors"
	"os/exec"
	"time"
)

// Adopt makes this process the parent of its children's leftover processes. It returns false, because only
// Linux supports that.
func Adopt() bool { return false }

// Children returns the ids of this process's children. Only Linux supports it.
func Children() []int { return nil }

// KillChildren kills this process's children except some, if [Adopt] is supported.
func KillChildren([]int) (int, error) { return 0, nil }

func (b *Box) start(Command) (*Child, error) {
	return nil, &BoxError{Stage: "namespaces", Err: errors.ErrUnsupported}
}

// Ahead is a uwf-box that starts before its plan is known, which only Linux supports.
type Ahead struct{}

// StartAhead starts nothing.
func StartAhead(string, Box, bool) *Ahead { return nil }

// Discard does nothing.
func (*Ahead) Discard() {}

// Holders returns nil, because this system doesn't show lock holders.
func Holders(string) []int { return nil }

// lockHolders returns nil, because this system doesn't show lock holders.
func lockHolders(string) ([]int, error) { return nil, nil }

// signalHolders does nothing.
func signalHolders(string, bool) error { return nil }

// KillMarked kills every process that was started with this environment entry, and returns their number. Only
// Linux supports it.
func KillMarked(string) (int, error) { return 0, nil }

// Moment has a meaning on Linux only.
type Moment struct{}

// Now returns the zero value.
func Now() Moment { return Moment{} }

// Within returns m.
func (m Moment) Within(time.Duration) Moment { return m }

// KillMarked kills nothing.
func (Moment) KillMarked(string, int) (int, error) { return 0, nil }

func startInit(c Command) (*Child, error) {
	c.Init = false
	return Start(c)
}

func startTied(cmd *exec.Cmd, c Command) (group, func(), error) {
	g, err := startInGroup(cmd, c)
	return g, func() {}, err
}
