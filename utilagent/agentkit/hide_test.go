package agentkit_test

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// Secrets in .env, config and environment are recognized without the agent's help, and appear in nothing that
// it is sent or that it leaves.
func TestSecretsAreKnown(t *testing.T) {
	t.Parallel()
	secrets := []string{"wJalrXUtnFEMI/K7MDENG", "hunter2-hunter2", "token-of-another-agent", "gh-from-the-shell"}
	th := agentkittest.New(t, agentkittest.Scenario{
		Task:    "Use " + secrets[0] + " in production.",
		Config:  "agents: { other: { command: x, env: { MY_TOKEN: " + secrets[2] + " } } }\n",
		Environ: []string{"GH_TOKEN=" + secrets[3]},
	})
	dotEnv := "AWS_SECRET=" + secrets[0] + "\nDB=pg://me:" + secrets[1] + "@db/x\nSTAGE=production\n"
	require.NoError(t, os.WriteFile(filepath.Join(th.Home, ".env"), []byte(dotEnv), 0o600))
	got := th.Run(agentkit.Options{Name: "told", Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		require.Contains(t, req.Prompt, "Use [hidden key] in production.")
		require.Equal(t, secrets[0], req.Getenv("AWS_SECRET"))
		handed := strings.Join(req.Environ(), "\n")
		require.Contains(t, handed, "GH_TOKEN="+secrets[3], "what the user has exported")
		require.Contains(t, handed, "STAGE=production")
		require.NotContains(t, handed, secrets[0])
		require.NotContains(t, handed, secrets[1])
		require.Contains(t, req.Environ("AWS_*"), "AWS_SECRET="+secrets[0])
		all := strings.Join(secrets, " ") + base64.StdEncoding.EncodeToString([]byte(dotEnv))
		fmt.Fprint(runenv.Of(ctx).Env.Stderr, secrets[1][:5])
		fmt.Fprintln(runenv.Of(ctx).Env.Stderr, secrets[1][5:])
		writing := req.Writing(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "it is " + secrets[0][:9]})
		err := req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: all, ToolCalls: []protocol.ToolCall{{ID: "1", Name: "x", Args: map[string]any{"a": all}}}})
		return agentkit.Result{SessionID: "s"}, errors.Join(writing, err, errors.New("it broke with "+all))
	}}).Failed("[hidden key]")
	require.NotContains(t, got.Stderr, "hunter2-hunter2")
	// The base64 encoding of adjacent text may remain.
	pieces := append(secrets, secrets[0][:9], base64.RawStdEncoding.EncodeToString([]byte("alrXUtnFEMI/K7M")), base64.RawStdEncoding.EncodeToString([]byte("hunter2-hun")))
	require.NoError(t, filepath.WalkDir(th.Home, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == ".env" || d.Name() == "config.yaml" {
			return err
		}
		data, err := os.ReadFile(path)
		for _, piece := range pieces {
			if strings.Contains(string(data), "Use "+secrets[0]) { // the task, which the test itself has stored
				break
			}
			require.NotContains(t, string(data), piece, path)
		}
		return err
	}))
}

// The prompt of a continued session lacks the role, but its system prompt contains it.
func TestSecretsOfTheRole(t *testing.T) {
	t.Parallel()
	w := twoRoles()
	w.Roles["worker"] = protocol.Role{Description: "Works.", Goal: "Sign in with wJalrXUtnFEMI-K7MDENG."}
	th := agentkittest.New(t, scenario{Workflow: &w, Environ: []string{"GH_TOKEN=wJalrXUtnFEMI-K7MDENG"}})
	var req agentkit.Request
	for _, session := range []string{"", "session-1"} {
		th.Run(resuming("a", good, &req)).Succeeded()
		require.Equal(t, session, req.SessionID)
		require.Contains(t, req.System, "Sign in with [hidden key].")
	}
}
