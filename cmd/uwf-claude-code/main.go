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

// adapter describes Claude Code. Statements about versions were tested with 1.0.120, 2.0.30, 2.1.50 and
// 2.1.329.
func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name: "claude-code", Program: "claude",
		Install: "npm install -g @anthropic-ai/claude-code",
		Login:   "run claude and type /login, or set ANTHROPIC_API_KEY",
		Probe: cliagent.Probe{
			Min:      cliagent.V(1, 0, 0),
			LoggedIn: []string{"auth", "status"},
			Since:    cliagent.V(2, 1, 197), // the oldest version tested; 1.0 takes the argument for a prompt
			Flaws: []cliagent.Flaw{{
				Before: cliagent.V(2, 0, 0),
				Text: "this version follows the settings and hooks of its working directory, and each resume " +
					"changes the session id; to update: npm install -g @anthropic-ai/claude-code",
			}},
		},
		Command:   command,
		Distrusts: func(v cliagent.Version) bool { return v.AtLeast(sources) },
		Decoder:   func(cliagent.Call) cliagent.Decoder { return &decoder{} },
		Repeats:   repeats,
		Sessions: cliagent.Sessions{
			Preset: true, Forks: true, Cuts: true,
			CopiesAnywhere: func(v cliagent.Version) bool { return v.AtLeast(cuts) },
			Renames:        func(v cliagent.Version) bool { return v.Before(cliagent.V(2, 0, 0)) },
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

// sources is the first version with an option for which settings to use. Settings in a workspace can name
// programs, which Claude Code would start without asking.
var sources = cliagent.V(2, 0, 0)

// listens is the first version known to accept messages while it works, and to confirm when its model gets
// them.
var listens = cliagent.V(2, 0, 30)

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"-p", "--output-format", "stream-json", "--verbose"}
	if c.Version.AtLeast(sources) {
		args = append(args, "--setting-sources", "user")
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
	case c.Version.AtLeast(cliagent.V(2, 0, 0)):
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
	hears := c.Version.AtLeast(listens)
	format, stdin, err := input(c.Prompt, hears)
	if err != nil {
		return cliagent.Invocation{}, err
	}
	return cliagent.Invocation{
		Args: append(append(args, format...), extra...), Stdin: stdin, Open: hears, Env: environ(c),
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
		{"CLAUDE_CODE_DISABLE_FILE_MENTIONS", "1"}, // newer versions only; see input
	} {
		if c.Env == nil || c.Env(v[0]) == "" {
			env = append(env, v[0]+"="+v[1])
		}
	}
	return env
}

// input returns the arguments and the stdin that pass a prompt to Claude Code.
//
// A prompt is sent as blocks if Claude Code could misread part of it, or if it receives messages while it
// works.
func input(prompt string, hears bool) (args []string, stdin string, err error) {
	blocks, plain := cliagent.ClaudeBlocks(prompt)
	if plain && !hears {
		return nil, prompt, nil
	}
	line, err := userLine("", blocks)
	args = []string{"--input-format", "stream-json"}
	if hears {
		args = append(args, "--replay-user-messages")
	}
	return args, string(line), err
}

// EncodeMessage implements [cliagent.MessageReceiver].
func (*decoder) EncodeMessage(id, text string) ([]byte, error) {
	blocks, _ := cliagent.ClaudeBlocks(text)
	return userLine(id, blocks)
}

// userLine encodes a message to Claude Code.
func userLine(id string, texts []string) ([]byte, error) {
	var line struct {
		Type    string `json:"type"`
		UUID    string `json:"uuid,omitempty"`
		Message struct {
			Role    string      `json:"role"`
			Content []textBlock `json:"content"`
		} `json:"message"`
	}
	line.Type, line.UUID, line.Message.Role = "user", id, "user"
	for _, text := range texts {
		line.Message.Content = append(line.Message.Content, textBlock{Type: "text", Text: text})
	}
	data, err := json.Marshal(line)
	return append(data, '\n'), err
}

type textBlock struct {
	Type string `json:"type"`
	Text string `json:"text"`
}
