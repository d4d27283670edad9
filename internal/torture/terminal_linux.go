package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"time"

	"golang.org/x/sys/unix"
)

// onTerminals reports that terminals can be tested on this platform.
const onTerminals = true

// onTerminal runs a command on a terminal with four lines, so that long texts go through a pager, which it
// quits at once, and returns everything written to the terminal.
func (w *world) onTerminal(ctx context.Context, args ...string) (string, error) {
	master, slave, err := terminal()
	if err != nil {
		return "", fmt.Errorf("open a terminal: %w", err)
	}
	defer master.Close()
	type output struct {
		all []byte
		err error // always set: the other side is closed
	}
	shown := make(chan output, 1)
	go func() {
		all, err := io.ReadAll(master)
		shown <- output{all, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	cmd := w.command(ctx, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = nil, slave, slave
	if _, err := master.WriteString("q"); err != nil { // quits a pager
		return "", err
	}
	err = cmd.Run()
	if errors.As(err, new(*exec.ExitError)) && ctx.Err() == nil {
		err = nil
	}
	// Wait for other processes with the terminal, but not forever.
	if err := slave.Close(); err != nil {
		return "", err
	}
	past := time.Unix(1, 0)
	defer time.AfterFunc(time.Minute, func() { _ = master.SetReadDeadline(past) }).Stop()
	got := <-shown
	if errors.Is(got.err, os.ErrDeadlineExceeded) {
		err = errors.Join(err, errors.New("somebody still has the terminal"))
	}
	return string(got.all), err
}

func terminal() (master, slave *os.File, err error) {
	if master, err = os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	conn, err := master.SyscallConn() // Fd would make reads block forever
	if err != nil {
		return nil, nil, err
	}
	var number uint32
	var failed error
	err = conn.Control(func(fd uintptr) {
		failed = unix.IoctlSetPointerInt(int(fd), unix.TIOCSPTLCK, 0)
		if failed == nil {
			number, failed = unix.IoctlGetUint32(int(fd), unix.TIOCGPTN)
		}
	})
	if err := errors.Join(err, failed); err != nil {
		return nil, nil, err
	}
	if slave, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		return nil, nil, err
	}
	modes, err := unix.IoctlGetTermios(int(slave.Fd()), unix.TCGETS)
	if err != nil {
		return nil, nil, err
	}
	modes.Oflag &^= unix.OPOST // no output processing
	modes.Lflag &^= unix.ECHO
	if err := unix.IoctlSetTermios(int(slave.Fd()), unix.TCSETS, modes); err != nil {
		return nil, nil, err
	}
	return master, slave, unix.IoctlSetWinsize(int(slave.Fd()), unix.TIOCSWINSZ, &unix.Winsize{Row: 4, Col: 100})
}
