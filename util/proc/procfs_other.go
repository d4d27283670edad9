//go:build unix && !linux

package proc

import (
	"errors"
	"syscall"
)

// birth is not known: nothing but Linux shows it in a file.
func birth(int) string { return "" }

// killSession kills nobody: only Linux lists the processes of a session.
func (g group) killSession() error { return nil }

// gone tells whether nobody is left. macOS says EPERM of a group of zombies.
func (g group) gone() bool {
	err := syscall.Kill(-int(g), 0)
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM)
}
