//go:build sshd

package main

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
)

// sshd is a real server on a port of this machine that accepts one key; at the far end it finds the uwf that
// the test binary acts as.
func sshd(t *testing.T, bin string) (config string) {
	t.Helper()
	dir := t.TempDir()
	server, err := exec.LookPath("/usr/sbin/sshd")
	require.NoError(t, err, "apt-get install openssh-server")
	for _, key := range []string{"host", "key"} {
		out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", filepath.Join(dir, key)).CombinedOutput()
		require.NoError(t, err, "%s", out)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	port := l.Addr().(*net.TCPAddr).Port
	require.NoError(t, l.Close())
	me, err := user.Current()
	require.NoError(t, err)
	if me.Uid == "0" {
		require.NoError(t, os.MkdirAll("/run/sshd", 0o755)) // required by root's sshd for privilege separation
	}
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	settings := write("sshd_config", fmt.Sprintf("Port %d\nListenAddress 127.0.0.1\nHostKey %s\nAuthorizedKeysFile %s\nPidFile none\nStrictModes no\nUsePAM no\n"+
		"PermitRootLogin yes\nPasswordAuthentication no\nMaxStartups 1000\nMaxSessions 1000\nSetEnv PATH=%s\n", port, filepath.Join(dir, "host"), filepath.Join(dir, "key.pub"), bin))
	cmd := exec.Command(server, "-D", "-e", "-f", settings)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
		if err == nil {
			err = c.Close()
		}
		return err == nil
	}, time.Minute, 20*time.Millisecond)
	return write("ssh_config", fmt.Sprintf("Host far\n\tHostName 127.0.0.1\n\tPort %d\n\tUser %s\n\tIdentityFile %s\n\tIdentitiesOnly yes\n\tBatchMode yes\n"+
		"\tStrictHostKeyChecking no\n\tUserKnownHostsFile /dev/null\n\tLogLevel ERROR\n", port, me.Username, filepath.Join(dir, "key")))
}

// Runs the conformance suite over a real ssh and sshd.
func TestRealSSH(t *testing.T) {
	t.Parallel()
	bin := programs(t)
	environ := append(os.Environ(), "PATH="+bin, realConfig+"="+sshd(t, bin))
	remotetest.RunProgram(t, environ, func(t *testing.T) remote.Address {
		a, err := remote.ParseAddress("far:"+filepath.Join(t.TempDir(), "a 'team'! $HOME"), "/")
		require.NoError(t, err)
		return a
	})
}
