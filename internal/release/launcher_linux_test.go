package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"
)

// launcher returns a command that starts a script in place of uwf, as the npm package does; nil without Node.
func launcher(t *testing.T, script string) *exec.Cmd {
	t.Helper()
	node, err := exec.LookPath("node")
	if err != nil {
		return nil // TestInstalled fails
	}
	tree, err := loadTree(".")
	require.NoError(t, err)
	dir := t.TempDir()
	write(t, read(t, tree.root, "packaging/npm/launch.js"), dir, "launch.js")
	write(t, `require("./launch.js")("uwf");`, dir, "uwf.js")
	require.NoError(t, os.Mkdir(filepath.Join(dir, "programs"), 0o755))
	program := filepath.Join(dir, "programs", "uwf")
	require.NoError(t, os.WriteFile(program, []byte("#!/bin/sh\n"+script), 0o755))
	return exec.Command(node, filepath.Join(dir, "uwf.js"))
}

// The npm launcher ends as uwf does: with its status, or by its signal.
func TestLauncherStatus(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{
		"exit 0": "exit status 0", "exit 7": "exit status 7", "kill -TERM $$": "signal: terminated", "kill -INT $$": "signal: interrupt",
		"kill -HUP $$": "signal: hangup", "kill -KILL $$": "signal: killed",
	} {
		cmd := launcher(t, script)
		if cmd == nil {
			return
		}
		_ = cmd.Run() // compared below
		require.Equal(t, want, cmd.ProcessState.String(), script)
	}
}

// With the npm launcher, Ctrl-C reaches uwf once, from the terminal. Other signals are passed on.
func TestLauncherPassesSignals(t *testing.T) {
	t.Parallel()
	cmd := launcher(t, `
trap 'echo interrupted' INT
trap 'echo terminated; exit 7' TERM
echo ready
while :; do read -r line; done
`)
	if cmd == nil {
		return
	}
	near, err := os.OpenFile("/dev/ptmx", os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	t.Cleanup(func() { _ = near.Close() })
	var number, locked uint32
	for request, at := range map[uintptr]*uint32{syscall.TIOCGPTN: &number, syscall.TIOCSPTLCK: &locked} {
		_, _, errno := syscall.Syscall(syscall.SYS_IOCTL, near.Fd(), request, uintptr(unsafe.Pointer(at)))
		require.Zero(t, errno)
	}
	far, err := os.OpenFile(fmt.Sprint("/dev/pts/", number), os.O_RDWR|syscall.O_NOCTTY, 0)
	require.NoError(t, err)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = far, far, far
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	require.NoError(t, cmd.Start())
	require.NoError(t, far.Close())
	lines, all := bufio.NewReader(near), ""
	until := func(mark string) {
		t.Helper()
		for !strings.Contains(all, mark) {
			line, err := lines.ReadString('\n')
			all += line
			require.NoError(t, err, all)
		}
	}
	until("ready")
	_, err = io.WriteString(near, "\x03")
	require.NoError(t, err)
	until("interrupted")
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	until("terminated")
	_ = cmd.Wait() // compared below
	require.Equal(t, 7, cmd.ProcessState.ExitCode())
	require.Equal(t, 1, strings.Count(all, "interrupted"), all)
}
