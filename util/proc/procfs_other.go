//go:build unix && !linux

package proc

import (
	"errors"
	"syscall"
)

// look isn't supported: only Linux has this file.
func look(int) stat { return stat{} }

// killSession does nothing: only Linux lists the processes of a session.
func (g group) killSession() error { return nil }

// gone reports whether no process is left. On macOS EPERM means a group of zombies.
func (g group) gone() bool {
	err := syscall.Kill(-int(g), 0)
	return errors.Is(err, syscall.ESRCH) || errors.Is(err, syscall.EPERM)
}

func tie(*syscall.SysProcAttr, Command) {}

func keepNice(int) {}
