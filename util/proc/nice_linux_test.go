package proc

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A child in its own session has our niceness, even if the kernel divides the processor between sessions.
func TestSessionKeepsNiceness(t *testing.T) {
	t.Parallel()
	// Only root can lower its niceness, and the tests can run at any niceness.
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, 0)
	require.NoError(t, err)
	want := min(20-raw+7, 19)
	// The kernel lets ordinary users change one session per tenth of a second, in total.
	require.Eventually(t, func() bool { return sessionAsNice(t, want) }, 20*time.Second, 50*time.Millisecond)
}

// sessionAsNice starts a child in its own session with a niceness, and reports whether the session has it as
// well.
func sessionAsNice(t *testing.T, want int) bool {
	child := exec.Command("sleep", "60")
	failed := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked: the thread ends with its niceness
		if err := syscall.Setpriority(syscall.PRIO_PROCESS, 0, want); err != nil {
			failed <- err
			return
		}
		_, err := startInGroup(child, Command{Session: true})
		failed <- err
	}()
	if !assert.NoError(t, <-failed) {
		return true // the assertion has already failed the test
	}
	defer func() { assert.Error(t, child.Wait()) }()
	defer func() { assert.NoError(t, child.Process.Kill()) }()
	raw, err := syscall.Getpriority(syscall.PRIO_PROCESS, child.Process.Pid)
	assert.NoError(t, err)
	assert.Equal(t, want, 20-raw)
	autogroup, err := os.ReadFile(fmt.Sprintf("/proc/%d/autogroup", child.Process.Pid))
	if errors.Is(err, fs.ErrNotExist) { // only the child's own niceness counts
		return true
	}
	assert.NoError(t, err)
	return strings.HasSuffix(string(autogroup), fmt.Sprintf(" nice %d\n", want))
}
