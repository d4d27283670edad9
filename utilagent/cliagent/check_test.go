package cliagent_test

import (
	"bytes"
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// TestCheck tests the report for setup and doctor: the program's path, its version, its problems.
func TestCheck(t *testing.T) {
	t.Parallel()
	flawed := toy()
	flawed.Probe.Flaws = []cliagent.Flaw{{Text: "it squeaks"}}
	old := toy()
	old.Probe.Min = cliagent.V(2, 0, 0)
	silent := toy()
	silent.Probe.Args = []string{"--no-such-flag"}
	asked, keyed := toy(), toy()
	asked.Probe.LoggedIn = []string{"logged", "in?"} // there is no script for it, so it fails
	asked.Probe.Since = cliagent.V(1, 2, 0)
	keyed.Probe, keyed.Logins = asked.Probe, []string{playVariable}
	own, bare, missing := asked, asked, asked
	own.OwnKey = func(func(string) string) (string, bool) { return playVariable, true }
	bare.OwnKey = func(func(string) string) (string, bool) { return "", true }
	missing.OwnKey = func(func(string) string) (string, bool) { return "NO_SUCH_KEY", true }
	unasked := asked
	unasked.Probe.Since = cliagent.V(1, 3, 0)
	commanded := cliagent.Adapter{Name: "toy", Commanded: true}
	tests := map[string]struct {
		adapter cliagent.Adapter
		args    []string
		bin     string
		want    protocol.AgentCheck
	}{
		"good":   {toy(), []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3"}},
		"flawed": {flawed, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3", Problems: []protocol.AgentProblem{{What: "toy 1.2.3: it squeaks", Do: "get a toy"}}}},
		"old": {old, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3",
			Problems: []protocol.AgentProblem{{What: "toy 1.2.3 is too old; need version 2.0.0 or later", Do: "get a toy"}}}},
		"silent": {silent, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0],
			Problems: []protocol.AgentProblem{{What: os.Args[0] + " does not report its version; it may be another program with that name", Do: "run it with --version; to use another program: export UWF_TOY_BIN=PATH"}}}},
		"absent": {toy(), []string{"--check"}, "no-such-toy", protocol.AgentCheck{
			Problems: []protocol.AgentProblem{{What: "no-such-toy is not installed (not on PATH)", Do: "correct UWF_TOY_BIN"}}}},
		"not logged in": {asked, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3",
			Problems: []protocol.AgentProblem{{What: "not logged in to toy", Do: "toy login"}}}},
		"a key instead":        {keyed, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3"}},
		"a provider's own key": {own, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3"}},
		"a provider without":   {bare, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3"}},
		"a provider's missing key": {missing, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3",
			Problems: []protocol.AgentProblem{{What: "NO_SUCH_KEY is not set; toy reads its API key from it", Do: "export NO_SUCH_KEY=KEY"}}}},
		"too old to know it": {unasked, []string{"--check"}, os.Args[0], protocol.AgentCheck{Program: os.Args[0], Version: "1.2.3"}},
		"a command":          {commanded, []string{"--check", "--", os.Args[0], "--check"}, "", protocol.AgentCheck{Program: os.Args[0]}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.want.Problems == nil {
				tt.want.Problems = []protocol.AgentProblem{}
			}
			e, err := agentkit.OS()
			require.NoError(t, err)
			var stdout, stderr bytes.Buffer
			e.Args, e.Stdout, e.Stderr, e.Dir = tt.args, &stdout, &stderr, t.TempDir()
			e.Environ = append(e.Environ, "UWF_HOME="+t.TempDir(), "UWF_TOY_BIN="+tt.bin, playVariable+"="+t.TempDir())
			require.Equal(t, min(len(tt.want.Problems), 1), agentkit.Main(t.Context(), e, cliagent.Options(tt.adapter)), stderr.String())
			var got protocol.AgentCheck
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &got))
			require.Equal(t, tt.want, got)
		})
	}
}
