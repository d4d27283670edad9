package main

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// openTerminal creates a terminal; data written to far can be read from near.
func openTerminal(columns, rows int) (near, far *os.File, err error) {
	near, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return nil, nil, err
	}
	fd := int(near.Fd())
	number, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err == nil {
		err = unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0)
	}
	if err == nil {
		err = unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Col: uint16(columns), Row: uint16(rows)})
	}
	if err == nil {
		far, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	}
	if err != nil {
		_ = near.Close() // nothing was written
		return nil, nil, fmt.Errorf("make a terminal: %w", err)
	}
	return near, far, nil
}

// ownSession makes the terminal on stdin the command's controlling terminal.
func ownSession() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true, Setctty: true} }
