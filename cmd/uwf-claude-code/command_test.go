package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// A clone's own settings name hooks, servers and a program for the key. A user's
// argument stands behind, and wins.
func TestSettingsOfTheDirectoryAreNotObeyed(t *testing.T) {
	t.Parallel()
	for _, p := range []cliagent.Permission{cliagent.Bypass, cliagent.Edits, cliagent.Readonly} {
		inv, err := command(cliagent.Call{Version: cliagent.V(2, 1, 329), Permission: p, Extra: []string{"--setting-sources", "user,project"}})
		require.NoError(t, err)
		args := strings.Join(inv.Args, " ")
		ours, users := strings.Index(args, "--setting-sources user "), strings.Index(args, "--setting-sources user,project")
		require.GreaterOrEqual(t, ours, 0)
		require.Greater(t, users, ours)
	}
	inv, err := command(cliagent.Call{Version: cliagent.V(1, 0, 120)})
	require.NoError(t, err)
	require.NotContains(t, inv.Args, "--setting-sources", "it does not know that")
}
