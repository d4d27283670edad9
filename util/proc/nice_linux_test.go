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
	child := exec.Command("sleep", "60")
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // and never let go: the thread ends with its niceness
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, 7); err != nil {
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
		require.Contains(t, string(said), "nice 7")
	}
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, child.Process.Pid)
	require.NoError(t, err)
	require.Equal(t, 7, 20-raw)
}
