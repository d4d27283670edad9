// Command uwf-claude-code is the uwf agent for Claude Code (the program claude). The engine starts it; see
// package cliagent.
package main

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

// structuredFlag makes Claude Code enforce the role's schema.
const structuredFlag = "--structured"

// adapter describes Claude Code. Statements about versions were tested with 2.0.30, 2.1.50 and
// 2.1.329.
func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name: "claude-code", Program: "claude",
		Install: "npm install -g @anthropic-ai/claude-code",
		Login:   "run claude and type /login, or set ANTHROPIC_API_KEY",
		Probe: cliagent.Probe{
			Min:      cliagent.V(2, 0, 30), // the oldest version tested
			LoggedIn: []string{"auth", "status"},
			Since:    cliagent.V(2, 1, 197), // older versions may take the argument for a prompt
		},
		Command:   command,
		Distrusts: true,
		Decoder:   func(cliagent.Call) cliagent.Decoder { return &decoder{} },
		Repeats:   repeats,
		Sessions: cliagent.Sessions{
			Preset: true, Forks: true, Cuts: true,
			CopiesAnywhere: func(v cliagent.Version) bool { return v.AtLeast(cuts) },
		},
		MaxTurns: 90,
		// Variables that an enclosing Claude Code sets for its children.
		Unset:  []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT"},
		Logins: []string{"ANTHROPIC_*", "CLAUDE_CODE_OAUTH_TOKEN", "AWS_BEARER_TOKEN_BEDROCK"},
		Usage:  "Runs \"claude -p\" in the working directory. With " + structuredFlag + ", claude returns the\nrole's data through --json-schema instead of front matter.",
	}
}

// cuts is the first version known to truncate a conversation at an entry from its output, to accept an ID for
// a copy, and to find a session from another work tree of the repository. Older ones identify entries in
// another way.
var cuts = cliagent.V(2, 1, 197)

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{
		"-p", "--output-format", "stream-json", "--verbose", "--input-format", "stream-json", "--replay-user-messages",
		"--setting-sources", "user", // settings in a workspace can name programs, which it would start without asking
	}
	if c.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(c.MaxTurns))
	}
	if c.MaxCostUSD > 0 {
		args = append(args, "--max-budget-usd", strconv.FormatFloat(c.MaxCostUSD, 'f', -1, 64))
	}
	args = append(args, permission(c.Permission)...)
	session := c.Session
	switch {
	case c.Cut != "" && !c.Version.AtLeast(cuts):
		return cliagent.Invocation{}, fmt.Errorf("claude %s: %w as it was at an earlier step", c.Version, cliagent.ErrCannotFork)
	case c.Resume && c.Fork:
		args = append(args, "--resume", c.Session, "--fork-session")
		if c.Version.AtLeast(cuts) { // sets the copy's ID
			session = c.Copy
			args = append(args, "--session-id", session)
		}
		if c.Cut != "" {
			args = append(args, "--resume-session-at", c.Cut)
		}
	case c.Resume:
		args = append(args, "--resume", c.Session)
	default:
		args = append(args, "--session-id", c.Session)
	}
	if c.Model != "" {
		args = append(args, "--model", c.Model)
	}
	extra := slices.Clone(c.Extra)
	if i := slices.Index(extra, structuredFlag); i >= 0 {
		schema, err := json.Marshal(c.Schema)
		if err != nil {
			return cliagent.Invocation{}, err
		}
		extra = slices.Replace(extra, i, i+1, "--json-schema", string(schema))
	}
	prompt, err := (*decoder)(nil).EncodeMessage("", c.Prompt)
	if err != nil {
		return cliagent.Invocation{}, err
	}
	return cliagent.Invocation{
		Args: append(args, extra...), Stdin: string(prompt), Open: true, Env: environ(c),
		// Its shells obey the files there, and some versions run no command without it.
		Own: []string{"session-env/" + session},
	}, nil
}

// permission returns the options for a permission.
func permission(p cliagent.Permission) []string {
	switch p {
	case cliagent.Edits:
		return []string{"--permission-mode", "acceptEdits"}
	case cliagent.Readonly:
		return []string{"--permission-mode", "plan"}
	}
	return []string{"--dangerously-skip-permissions"}
}

const maxRetries = "CLAUDE_CODE_MAX_RETRIES"

// repeats returns how many times Claude Code retries a request: half of the remaining runs, since the engine
// waits longer between retries.
func repeats(c cliagent.Call) int {
	const most = 3
	if c.Env != nil {
		if n, err := strconv.Atoi(c.Env(maxRetries)); err == nil {
			return n
		}
	}
	return min((c.Retries+1)/2, most)
}

// environ stops Claude Code from updating itself during a step, sending telemetry, retrying for minutes, and
// reading files that a prompt seems to mention. The user's own settings take precedence.
func environ(c cliagent.Call) []string {
	var env []string
	for _, v := range [][2]string{
		{"DISABLE_AUTOUPDATER", "1"}, {"DISABLE_TELEMETRY", "1"}, {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC", "1"},
		{maxRetries, strconv.Itoa(repeats(c))},
		{"CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"}, // newer versions only; see cliagent.ClaudeBlocks
	} {
		if c.Env == nil || c.Env(v[0]) == "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return env
}

// EncodeMessage implements [cliagent.MessageReceiver]: it returns a message in blocks that Claude Code cannot
// misread.
func (*decoder) EncodeMessage(id, text string) ([]byte, error) {
	var line struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid,omitempty"`
		Message struct {
			Role    string      `json:"role"`
			Content []textBlock `json:"content"`
		} `json:"message"`
	}
	line.Type, line.UUID, line.Message.Role = "user", id, "user"
	for _, part := range cliagent.ClaudeBlocks(text) {
		line.Message.Content = append(line.Message.Content, textBlock{Type: "text", Text: part})
	}
	data, err := json.Marshal(line)
	return append(data, '\n'), err
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
