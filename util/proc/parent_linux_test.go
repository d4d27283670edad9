package proc_test

import (
	"bufio"
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

// A child tied to its parent exits with it, even if the parent can't signal it.
func TestWithParent(t *testing.T) {
	t.Parallel()
	if os.Getenv("PROC_TEST_PARENT") != "" {
		child, pid := shell(t, "echo $$; exec sleep 1000", func(c *proc.Command) { c.WithParent = true })
		_, _ = os.Stdout.WriteString("pid " + pid() + "\n")
		_, _ = child.Wait(t.Context(), time.Minute)
		return
	}
	parent := exec.Command(os.Args[0], "-test.run=^TestWithParent$")
	parent.Env = append(os.Environ(), "PROC_TEST_PARENT=1")
	out, err := parent.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, parent.Start())
	pid := 0
	for lines := bufio.NewScanner(out); pid == 0 && lines.Scan(); {
		if text, ok := strings.CutPrefix(lines.Text(), "pid "); ok {
			pid, err = strconv.Atoi(text)
			require.NoError(t, err)
		}
	}
	require.NotZero(t, pid)
	require.NoError(t, syscall.Kill(pid, 0))
	require.NoError(t, parent.Process.Kill())
	require.Error(t, parent.Wait())
	require.Eventually(t, func() bool { return syscall.Kill(pid, 0) != nil || isZombie(pid) }, soon, time.Millisecond)
}
