package doctor

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// Claude Code refuses to run as root unless a variable declares a sandbox.
func TestClaudeAsRoot(t *testing.T) {
	t.Parallel()
	x := examination{Doctor: Doctor{Root: true}, config: &protocol.Config{DefaultAgent: "a", Agents: map[string]protocol.Agent{
		"a": {Command: "uwf-claude-code"}, "b": {Command: "uwf-claude-code", Permission: "edits"},
		"c": {Command: "uwf-claude-code", Env: map[string]string{"IS_SANDBOX": "1"}}, "d": {Command: "uwf-codex"},
	}}}
	x.asRoot()
	require.Len(t, x.findings, 1)
	require.Equal(t, protocol.SeverityProblem, x.findings[0].Severity)
	require.Contains(t, x.findings[0].Do, "uwf config set agents.a.env.IS_SANDBOX 1")
}
