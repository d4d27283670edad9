package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// A child in a session of its own is as nice as we are, also where the kernel shares
// the processor among sessions.
func TestSessionKeepsNiceness(t *testing.T) {
	t.Parallel()
	// Only root may be less nice than before, and the tests may run at any niceness.
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	require.NoError(t, err)
	want := min(20-raw+7, 19)
	child := exec.Command("sleep", "60")
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never let go: the thread ends with its niceness
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, want); err != nil {
			failed <- err
			return
		}
		_, err := startInGroup(child, Command{Session: true})
		failed <- err
	}()
	require.NoError(t, <-failed)
	defer func() { require.Error(t, child.Wait()) }()
	defer func() { require.NoError(t, child.Process.Kill()) }()
	said, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", child.Process.Pid))
	if !errors.Is(err, fs.ErrNotExist) { // otherwise only the child's own niceness counts
		require.NoError(t, err)
		require.Contains(t, string(said), fmt.Sprintf("nice %d\n", want))
	}
	raw, err = syscall.Getpriority(syscall.PRIO_PROCESS, child.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, want, 20-raw)
}
