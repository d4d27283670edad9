package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// Settings in a clone could configure hooks, servers and a program for the key. The user's arguments follow,
// and take precedence.
func TestDirectorySettingsAreIgnored(t *testing.T) {
	t.Parallel()
	for _, p := range []cliagent.Permission{cliagent.Bypass, cliagent.Edits, cliagent.Readonly} {
		inv, err := command(cliagent.Call{Version: cliagent.V(2, 1, 329), Permission: p, Extra: []string{"--setting-sources", "user,project"}})
		require.NoError(t, err)
		args := strings.Join(inv.Args, " ")
		ours, users := strings.Index(args, "--setting-sources user "), strings.Index(args, "--setting-sources user,project")
		require.GreaterOrEqual(t, ours, 0)
		require.Greater(t, users, ours)
	}
}

// Claude Code retries a request for half of the remaining runs; the user's setting takes precedence.
func TestRepeats(t *testing.T) {
	t.Parallel()
	for retries, want := range map[int]string{0: "0", 1: "1", 2: "1", 4: "2", 99: "3"} {
		require.Contains(t, environ(cliagent.Call{Retries: retries}), maxRetries+"="+want)
		require.Equal(t, want, strconv.Itoa(repeats(cliagent.Call{Retries: retries})))
	}
	mine := cliagent.Call{Retries: 2, Env: func(name string) string { return map[string]string{maxRetries: "7"}[name] }}
	require.Equal(t, 7, repeats(mine))
	require.NotContains(t, strings.Join(environ(mine), " "), maxRetries)
}
