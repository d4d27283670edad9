//go:build agents

package agentstest

import (
	"testing"

	"github.com/stretchr/testify/require"
)

var claudeCode = program{
	name: "claude-code", version: "2.1.329", speak: anthropic,
	npm: npm{
		packages: []string{"@anthropic-ai/claude-code@2.1.329"}, bin: "claude",
		script: "@anthropic-ai/claude-code/install.cjs",
	},
	environ: func(_ *testing.T, url, bin, home string) map[string]string {
		return map[string]string{
			"UWF_CLAUDE_CODE_BIN": bin, "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-dummy-key",
			"CLAUDE_CODE_MAX_RETRIES": "0",
			"IS_SANDBOX":              "1", // it refuses to run unasked as root otherwise
		}
	},
}

func TestClaudeCode(t *testing.T) { tellAll(t, claudeCode) }

// A forked thread goes on in a copy of the session, and the session itself knows
// nothing of that.
func TestClaudeCodeForks(t *testing.T) {
	t.Parallel()
	bin := claudeCode.npm.install(t)
	m, url := newModel(t, anthropic)
	b := &bench{world: newWorld(t, "uwf-claude-code", nil, claudeCode.environ(t, url, bin, t.TempDir())), model: m}
	m.play(reply{text: answer("fog")}, reply{text: "---\n$status: bad\nwhy: too grey\n---\n"}, reply{text: answer("rain")}, reply{text: answer("hail")})
	b.mustStep()
	original := b.last().SessionID
	b.mustStep()
	var forked struct{ Thread string }
	b.json(&forked, "thread", "fork", b.thread+"@-1")
	fork := &bench{world: b.world.of(forked.Thread), model: m}
	fork.mustStep()
	require.Equal(t, "rain", fork.last().Output["word"])
	require.NotEqual(t, original, fork.last().SessionID)
	b.mustStep()
	require.Equal(t, "hail", b.last().Output["word"])
	require.Equal(t, original, b.last().SessionID)
	asked := m.asked()
	require.Contains(t, asked[2], "I wrote fog.")
	require.Contains(t, asked[3], "I wrote fog.")
	require.NotContains(t, asked[3], "I wrote rain.")
	report.add(claudeCode, "a fork goes on in a copy", "ran")
}
