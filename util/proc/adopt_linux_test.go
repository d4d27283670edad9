package proc_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// adopts plays an adopting process, because the test process would adopt for all tests.
func adopts() {
	if !proc.Adopt() {
		os.Exit(1)
	}
	mine, err := proc.Start(proc.Command{Path: "/bin/sh", Args: []string{"-c", "exec sleep 300"}})
	if err != nil {
		os.Exit(2)
	}
	child, err := proc.Start(proc.Command{Path: "/bin/sh", Args: []string{"-c", os.Args[1]}, Env: os.Environ(), Stderr: os.Stderr})
	if err != nil {
		os.Exit(3)
	}
	_, err = child.Wait(context.Background(), time.Second)
	n, killErr := proc.KillChildren([]int{mine.Pid()})
	fmt.Println(n, err, killErr, len(proc.Children()))
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, _ = mine.Wait(ctx, time.Millisecond)
	os.Exit(0)
}

// A process that cleared its environment and left its group and session is still found, as are its children;
// our other children keep running.
func TestAdopted(t *testing.T) {
	t.Parallel()
	for name, line := range map[string]string{
		"a daemon":      `env -i setsid sh -c 'echo $$ > pid.new; mv pid.new pid; exec sleep 300' & while ! [ -e pid ]; do sleep 0.01; done`,
		"a family":      `env -i setsid sh -c 'setsid sleep 300 & setsid sh -c "sleep 300 & echo \$! > pid.new; mv pid.new pid; wait" & wait' & while ! [ -e pid ]; do sleep 0.01; done`,
		"one that ends": `(env -i setsid sh -c 'true' &) ; sleep 300 & echo $! > pid`,
	} {
		dir := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0], line)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), childVar+"=adopt")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s: %s", name, out)
		require.Regexp(t, `^\d+ <nil> <nil> 1\n$`, string(out), name)
		text, err := os.ReadFile(dir + "/pid")
		require.NoError(t, err)
		pid, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		require.ErrorIs(t, syscall.Kill(pid, 0), syscall.ESRCH, name)
	}
}
