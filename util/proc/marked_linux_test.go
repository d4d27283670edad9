package proc_test

import (
	"os/exec"
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
	testKillMarked(t, "PROC_TEST_MARK=one", func(entry string, _ int) (int, error) { return proc.KillMarked(entry) })
}

// So is it if only younger processes are looked at, few or many.
func TestKillMarkedSince(t *testing.T) {
	t.Parallel()
	now := proc.Now()
	testKillMarked(t, "PROC_TEST_MARK=two", now.KillMarked)
	const many = 300
	for range many {
		require.NoError(t, exec.Command("true").Run())
	}
	testKillMarked(t, "PROC_TEST_MARK=three", now.KillMarked)
}

func testKillMarked(t *testing.T, entry string, kill func(entry string, child int) (int, error)) {
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
	killed, err := kill(entry, marked.Pid())
	require.NoError(t, err)
	require.Equal(t, 1, killed)
	require.Eventually(t, func() bool { return syscall.Kill(left, 0) != nil || isZombie(left) }, soon, time.Millisecond)
	require.NoError(t, syscall.Kill(other.Pid(), 0))
	require.NoError(t, syscall.Kill(other.Pid(), syscall.SIGKILL))
	_, err = other.Wait(t.Context(), time.Minute)
	require.NoError(t, err)
}
