// Command uwf-gemini is the uwf agent for the Gemini CLI. The engine starts it; see docs/agents.
package main

import (
	"encoding/json"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "gemini",
		Program: "gemini",
		Install: "npm install -g @google/gemini-cli",
		Login:   "gemini (and choose how to log in), or set GEMINI_API_KEY",
		Probe: cliagent.Probe{
			Help: []string{"--help"},
		},
		Command: command,
		Decoder: func(c cliagent.Call) cliagent.Decoder { return &decoder{escaped: isEscaped(c)} },
		// A session belongs to the directory in which it was started.
		Logins:      []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Sessions:    cliagent.Sessions{Preset: true},
		CountsTurns: true,
		Usage:       `Runs "gemini --output-format stream-json" in the working directory.`,
	}
}

// modes maps permissions to the CLI's approval modes. Without a user, "default" refuses everything but
// reading.
var modes = map[cliagent.Permission]string{
	cliagent.Bypass:   "yolo",
	cliagent.Edits:    "auto_edit",
	cliagent.Readonly: "default",
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"--output-format", "stream-json", "--approval-mode", modes[c.Permission]}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	switch {
	case c.Resume:
		args = append(args, "--resume", c.Session)
	case c.Help == "" || strings.Contains(c.Help, "--session-id"):
		args = append(args, "--session-id", c.Session)
	}
	inv := cliagent.Invocation{
		Args: append(args, c.Extra...),
		Env:  []string{"GEMINI_CLI_NO_RELAUNCH=1"}, // otherwise it restarts itself and stays as a grandchild
	}
	hand(c, &inv)
	return inv, nil
}

// hand adds a prompt to an invocation.
//
// On stdin, the Gemini CLI takes "@" before a word for a file mention: it looks for such files, inserts them,
// even whole directories, and changes the surrounding text. It takes a text that begins with "/" for a
// command. Prompts contain mail addresses, code and other roles' texts that mean neither. The expansion of a
// custom command is not changed, so such a prompt becomes a custom command for this call.
func hand(c cliagent.Call, inv *cliagent.Invocation) {
	inv.Stdin = c.Prompt
	if !isSpecial(c.Prompt) {
		return
	}
	t, ok := templateOf(c)
	if !ok {
		inv.Stdin = escape(c.Prompt)
		return
	}
	name := commandName(c.Session)
	inv.Files = append(inv.Files, cliagent.File{Path: filepath.Join(t.dir, name+".toml"), Data: t.toml()})
	inv.Stdin = strings.TrimSpace("/" + name + " " + t.arg)
}

// isSpecial reports whether the CLI would change a prompt.
func isSpecial(prompt string) bool {
	return mention().MatchString(prompt) || strings.HasPrefix(strings.TrimSpace(prompt), "/")
}

// mention matches file mentions, slightly more broadly than the CLI.
var mention = lazyregexp.New(`@[^ \t\r\n,;!?()\[\]{}]`)

// escape is the fallback if there can be no custom command: the model sees the backslash.
func escape(prompt string) string {
	return mention().ReplaceAllStringFunc(prompt, func(m string) string { return `\` + m })
}

// escaped warns that the text was changed on its way to the model.
const escaped = `the Gemini CLI takes "@" before a word for a file to read: the model was given "\@" instead`

func isEscaped(c cliagent.Call) bool {
	if !mention().MatchString(c.Prompt) {
		return false
	}
	_, ok := templateOf(c)
	return !ok
}

// template is the text of a custom command. The CLI replaces every {{args}} with arg and does not scan the
// result, so it can hide markers of the CLI in the prompt.
type template struct{ dir, text, arg string }

const argsMark = "{{args}}"

// templateOf returns the command that expands to a prompt. It returns false if the version does not support
// custom commands without a terminal, or if the prompt contains more than one kind of their markers:
// {{args}}, @{file}, !{command}.
func templateOf(c cliagent.Call) (template, bool) {
	t := template{dir: commandDir(c.Env)}
	if t.dir == "" || !c.Version.AtLeast(cliagent.V(0, 10, 0)) {
		return t, false
	}
	for _, way := range []struct{ mark, text, arg string }{
		{"", "", ""}, {argsMark, argsMark, argsMark}, {"@{", argsMark + "{", "@"}, {"!{", argsMark + "{", "!"},
	} {
		t.text, t.arg = c.Prompt, way.arg
		if way.mark != "" {
			t.text = strings.ReplaceAll(c.Prompt, way.mark, way.text)
		}
		means := strings.Contains(t.text, "@{") || strings.Contains(t.text, "!{") || way.mark == "" && strings.Contains(t.text, argsMark)
		if !means && (way.mark == "" || strings.ReplaceAll(t.text, argsMark, t.arg) == c.Prompt) {
			return t, true
		}
	}
	return t, false
}

// toml encodes the command's file. A JSON string is a valid TOML string, except for DEL.
func (t template) toml() []byte {
	data, _ := json.Marshal(t.text) // a string can always be encoded
	return []byte("description = \"a prompt of uwf, removed after its run\"\nprompt = " + strings.ReplaceAll(string(data), "\x7f", `\u007f`) + "\n")
}

// commandDir returns the CLI's directory for the user's commands.
func commandDir(env func(string) string) string {
	for _, name := range []string{"GEMINI_CLI_HOME", "HOME", "USERPROFILE"} {
		if dir := env(name); filepath.IsAbs(dir) {
			return filepath.Join(dir, ".gemini", "commands")
		}
	}
	return ""
}

// commandName returns a name per session, which has one call at a time; a file left by a killed call is
// replaced by the next.
func commandName(session string) string {
	return "uwf-" + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return '_'
	}, session)
}
