//go:build agents

package agentstest

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// acpProgram is a program that speaks the Agent Client Protocol.
type acpProgram struct {
	program
	command []string // after "--"
	asking  []string // our arguments that make it ask before it runs a command
}

func TestACPGemini(t *testing.T) {
	tellACP(t, acpProgram{
		command: []string{"gemini", "--acp", "-m", "gemini-2.5-pro"}, asking: []string{"--session-mode", "default"},
		program: program{
			name: "acp gemini", speak: google,
			npm:     gemini().npm,
			hand:    gemini().hand,
			environ: gemini().environ,
			without: map[string]string{
				"tool call":              "it does not tell what its tools return; the stories about permissions run one",
				"resume in a later step": "it destroys a session that is loaded in the minute in which it was used: uwf-acp starts over",
				"a killed run":           "as resume; uwf-gemini goes on with it",
				copied:                   "it cannot copy a session",
			},
		},
	})
}

func TestACPOpencode(t *testing.T) {
	tellACP(t, acpProgram{
		command: []string{"opencode", "acp"},
		program: program{
			name: "acp opencode", speak: chat,
			without: map[string]string{"what is counted was billed": "it reports the tokens of the last question only"},
			npm:     opencode().npm,
			hand:    opencode().hand,
			environ: also(opencode().environ, "OPENCODE_DISABLE_AUTOUPDATE", "1"),
		},
	})
}

func TestACPClaude(t *testing.T) {
	tellACP(t, acpProgram{
		command: []string{"claude-agent-acp"}, asking: []string{"--session-mode", "default"},
		program: program{
			name: "acp claude", untitled: true, speak: anthropic,
			npm: npm{name: "@agentclientprotocol/claude-agent-acp", bin: "claude-agent-acp"},
			by:  claudeCode.npm, hand: claudeCode.hand,
			environ: also(claudeCode.environ, // no side requests
				"CLAUDE_CODE_ENABLE_PROMPT_SUGGESTION", "false", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"),
		},
	})
}

func TestACPCodex(t *testing.T) {
	tellACP(t, acpProgram{
		command: []string{"codex-acp"}, asking: []string{"--session-mode", "read-only"},
		program: program{
			name: "acp codex", untitled: true, speak: responses,
			npm: npm{name: "@agentclientprotocol/codex-acp", bin: "codex-acp"},
			by:  codex().npm, hand: codex().hand,
			environ: codex().environ,
			without: map[string]string{granted: "it asks only for what its model wants outside of its sandbox; that holds in the story about refusing"},
		},
	})
}

// also adds variables, as name and value, for a program that another adapter drives as well.
func also(environ func(*testing.T, string, string, string) map[string]string, more ...string) func(*testing.T, string, string, string) map[string]string {
	return func(t *testing.T, url, bin, home string) map[string]string {
		env := environ(t, url, bin, home)
		for i := 0; i < len(more); i += 2 {
			env[more[i]] = more[i+1]
		}
		return env
	}
}

const (
	granted = "a permission that is granted"
	refused = "a permission that is refused"
	copied  = "a fork goes on in a copy"
)

// tellACP runs the stories for all programs, and those about permissions.
func tellACP(t *testing.T, p acpProgram) {
	environ := p.environ
	p.environ = func(t *testing.T, url, bin, home string) map[string]string {
		env := environ(t, url, bin, home)
		env["UWF_ACP_BIN"] = bin // replaces the first word of the command
		return env
	}
	p.adapter = "acp"
	p.args = append([]string{"--"}, p.command...)
	own := append(append([]string{}, p.asking...), p.args...)
	asks := p.without[granted] == ""
	p.more = []story{
		{granted, func(t *testing.T, b *bench) { permission(t, b, own, "full", asks, true) }},
		{refused, func(t *testing.T, b *bench) { permission(t, b, own, "read-only", asks, false) }},
		{copied, fork}, {"told while it works", told(3)},
	}
	tellAll(t, p.program)
}

// permission lets the model run a command that needs a permission, unless the program's sandbox is enough.
func permission(t *testing.T, b *bench, args []string, setting string, asks, grants bool) {
	made := "made-as-" + setting + ".txt"
	b.configure(map[string]any{"permission": setting, "args": args})
	b.model.play(reply{text: "I try it.", run: "echo done > " + made}, reply{text: answer("hail")})
	status, said, err := b.step()
	log, readErr := os.ReadFile(filepath.Join(b.dir, "home", "runs", b.thread, "program.stdout"))
	require.NoError(t, readErr)
	require.Equal(t, asks, strings.Contains(string(log), `"session/request_permission"`), "the program has asked")
	_, missing := os.Stat(filepath.Join(b.dir, "work", made))
	require.Equal(t, grants, missing == nil, "the command has run")
	require.NoError(t, err, said) // even a model that was denied can answer
	require.Equal(t, "idle", status)
}
