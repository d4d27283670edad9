package proc_test

import (
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/proc"
)

// A process that a child left in another session is found by its environment; one with a longer entry isn't.
func TestKillMarked(t *testing.T) {
	t.Parallel()
	const entry = "PROC_TEST_MARK=one"
	mark := func(value string) func(*proc.Command) {
		return func(c *proc.Command) { c.Env = append(c.Env, value) }
	}
	// Until it has its own session it belongs to the group, which ends with the shell.
	marked, pid := shell(t, `setsid sh -c "echo \$\$; touch '$DIR/ready'; exec sleep 1000" & while ! [ -e "$DIR/ready" ]; do sleep 0.01; done`,
		mark(entry), mark("DIR="+t.TempDir()))
	left, err := strconv.Atoi(pid())
	require.NoError(t, err)
	_, err = marked.Wait(t.Context(), time.Minute)
	require.NoError(t, err)
	other, ready := shell(t, "echo ready; exec sleep 1000", mark(entry+"s"))
	ready()
	killed, err := proc.KillMarked(entry)
	require.NoError(t, err)
	require.Equal(t, 1, killed)
	require.Eventually(t, func() bool { return syscall.Kill(left, 0) != nil || isZombie(left) }, soon, time.Millisecond)
	require.NoError(t, syscall.Kill(other.Pid(), 0))
	require.NoError(t, syscall.Kill(other.Pid(), syscall.SIGKILL))
	_, err = other.Wait(t.Context(), time.Minute)
	require.NoError(t, err)
}
