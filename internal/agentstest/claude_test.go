//go:build agents

package agentstest

import "testing"

var claudeCode = program{
	name: "claude-code", speak: anthropic,
	npm: npm{
		name: "@anthropic-ai/claude-code", bin: "claude",
		script: "@anthropic-ai/claude-code/install.cjs",
	},
	refusal: 429,
	hand:    []string{"-p", "hello"},
	environ: func(_ *testing.T, url, bin, home string) map[string]string {
		return map[string]string{
			"UWF_CLAUDE_CODE_BIN": bin, "HOME": home, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "sk-ant-dummy-key",
			"CLAUDE_CODE_MAX_RETRIES": "0",
			"IS_SANDBOX":              "1", // otherwise it refuses to run as root without asking
		}
	},
	more: []story{{"told while it works", told(2)}, {"a fork goes on in a copy", fork}, {"a fork in a repository goes on in a copy", forkInRepository}, {"confine is off, or required", confineSettings}, {"more is needed than is known", moreIsNeeded}, {"a skill becomes a run", skill}},
}

func TestClaudeCode(t *testing.T) { tellAll(t, claudeCode) }
