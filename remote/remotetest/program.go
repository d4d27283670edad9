package remotetest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/remote"
	"github.com/united-workforce/uwf/remote/wire"
)

// RunProgram runs the suite against a helper program as uwf would start it: the program for the address,
// found on the PATH of environ. Each call of address creates an empty remote, which gets the hash function of
// its first client.
func RunProgram(t *testing.T, environ []string, address func(t *testing.T) remote.Address) {
	Run(t, func(t *testing.T, a cas.Algorithm) Open {
		at := address(t)
		return func(t testing.TB) remote.Remote {
			t.Helper()
			c, err := wire.Dial(t.Context(), wire.Helper{Address: at, Environ: environ, Dir: t.TempDir()},
				wire.Options{Hash: a, Program: "remotetest"})
			require.NoError(t, err)
			return c
		}
	})
}
