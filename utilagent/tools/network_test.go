package tools

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
)

// A restricted network requires namespaces: without uwf-box no command runs.
func TestLimitedNetworkNeedsABox(t *testing.T) {
	t.Parallel()
	w, err := OpenWorkspace(t.TempDir())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, w.Close()) })
	for _, c := range []struct {
		network protocol.Network
		runs    bool
	}{{nil, true}, {protocol.Network{"all"}, true}, {protocol.Network{"none"}, false}, {protocol.Network{"a.example"}, false}} {
		commands := Commands{Shell: true, Network: c.network}
		require.Equal(t, c.runs, commands.off() == "")
		_, _, err := commands.Hold(t.Context(), w, proc.Command{Path: "/bin/true", Dir: w.Dir()})
		require.Equal(t, c.runs, err == nil, "%v", err)
	}
}
