package proc

import (
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// mountVar holds a directory for the child process of TestAheadMounts.
const mountVar = "UWF_TEST_MOUNT"

// TestAheadMounts tests that a child that waits isn't used after something was mounted, in a namespace of its own.
func TestAheadMounts(t *testing.T) {
	if dir := os.Getenv(mountVar); dir != "" {
		a := StartAhead("/nowhere", Box{}, false)
		require.True(t, a.seesMounts())
		require.NoError(t, unix.Mount("none", dir, "tmpfs", 0, ""))
		require.False(t, a.seesMounts())
		return
	}
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestAheadMounts$")
	cmd.Env = append(os.Environ(), mountVar+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN},
		UidMappings: []syscall.SysProcIDMap{{ContainerID: os.Geteuid(), HostID: os.Geteuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getegid(), HostID: os.Getegid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	if _, ran := err.(*exec.ExitError); err != nil && !ran {
		t.Skip("this machine has no namespaces: ", err)
	}
	require.NoError(t, err, string(out))
}
