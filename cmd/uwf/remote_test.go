package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/remotetest"
	"github.com/united-workforce/uwf/remote/wire"
)

// The far end of ssh is a remote like any other.
func TestRemoteServe(t *testing.T) {
	t.Parallel()
	remotetest.Run(t, func(t *testing.T, a cas.Algorithm) remotetest.Open {
		home := filepath.Join(t.TempDir(), "team")
		return func(t testing.TB) remote.Remote {
			cmd := exec.Command("uwf", "remote", "serve", home)
			cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
			in, err := cmd.StdinPipe()
			require.NoError(t, err)
			out, err := cmd.StdoutPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			c, err := wire.Connect(t.Context(), out, in, func() error {
				_ = in.Close()
				return cmd.Wait()
			}, wire.Options{Hash: a, Program: "test"})
			require.NoError(t, err)
			return c
		}
	})
}
