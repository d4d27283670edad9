// Command uwf-codex is the uwf agent for OpenAI's Codex CLI. The engine starts it; see docs/agents.
package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "codex",
		Program: "codex",
		Install: "npm install -g @openai/codex",
		Login:   "codex login (or set CODEX_API_KEY)",
		Probe: cliagent.Probe{
			Help:     []string{"exec", "--help"},
			Min:      cliagent.V(0, 50, 0), // older versions: another format, no resume, status 0 on errors
			LoggedIn: []string{"login", "status"},
			Flaws: []cliagent.Flaw{{
				Before: cliagent.V(0, 123, 0),
				Text: "this version replaces a missing session with a new one, so uwf starts over; to update: " +
					"npm install -g @openai/codex@latest",
			}, {
				Before: profiles,
				Text: "with permission edits and read-only, its commands can read keys; to update: npm install " +
					"-g @openai/codex@latest",
			}},
		},
		Command:     command,
		Distrusts:   true,
		Decoder:     func(c cliagent.Call) cliagent.Decoder { return &decoder{call: c} },
		Logins:      []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		OwnKey:      ownKey,
		Repeats:     repeats,
		Sessions:    cliagent.Sessions{Forks: true, AnyDir: true},
		CountsTurns: true,
		Usage:       `Runs "codex exec --json" in the working directory.`,
	}
}

// distrust returns a setting that makes Codex ignore the settings of a directory and its parents, which can
// name programs to start.
func distrust(dir string) string {
	var entries []string
	for at := dir; ; at = filepath.Dir(at) {
		name, _ := json.Marshal(at) // a string can always be encoded
		entries = append(entries, string(name)+`={trust_level="untrusted"}`)
		if at == filepath.Dir(at) {
			return "projects={" + strings.Join(entries, ",") + "}"
		}
	}
}

// profiles is the first version whose sandbox can deny reading paths.
var profiles = cliagent.V(0, 138, 0)

// sandbox returns the options for Codex's own sandbox. A version whose sandbox may not hide secrets causes a
// warning (Flaws).
func sandbox(c cliagent.Call, mode, profile string) []string {
	if c.Confined || !c.Version.AtLeast(profiles) {
		return []string{"-s", mode}
	}
	deny := make([]string, len(c.Hidden))
	for i, path := range c.Hidden {
		name, _ := json.Marshal(path) // a string can always be encoded
		deny[i] = string(name) + `="deny"`
	}
	return []string{"-c", `default_permissions="uwf"`, "-c", `permissions.uwf={extends="` + profile + `",filesystem={` + strings.Join(deny, ",") + "}}"}
}

// command returns the command line. All options precede "resume" and "fork", which accept none of them.
func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"exec", "--json", "--skip-git-repo-check", "-C", c.Cwd, "-c", distrust(c.Cwd)}
	switch c.Permission {
	case cliagent.Readonly:
		args = append(args, sandbox(c, "read-only", ":read-only")...)
	case cliagent.Edits:
		args = append(args, sandbox(c, "workspace-write", ":workspace")...)
	default:
		args = append(args, "--dangerously-bypass-approvals-and-sandbox")
	}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	args = append(args, c.Extra...)
	switch {
	case c.Resume && c.Fork && c.Help != "" && !strings.Contains(c.Help, "fork"):
		return cliagent.Invocation{}, fmt.Errorf("codex %s: %w", c.Version, cliagent.ErrCannotFork)
	case c.Resume && c.Fork:
		args = append(args, "fork", c.Session)
	case c.Resume:
		args = append(args, "resume", c.Session)
	}
	return cliagent.Invocation{Args: append(args, "-"), Stdin: c.Prompt}, nil
}

// ownKey implements [cliagent.Adapter.OwnKey]. With a custom model provider Codex needs no login, only the
// key from its settings.
func ownKey(env func(string) string) (variable string, own bool) { return keyIn(settings(env)) }

// repeats implements [cliagent.Adapter.Repeats].
func repeats(c cliagent.Call) int {
	const usual = 4
	_, provider := providerIn(settings(c.Env))
	if n, err := strconv.Atoi(provider["request_max_retries"]); err == nil {
		return n
	}
	return usual
}

func settings(env func(string) string) string {
	home := cmp.Or(env("CODEX_HOME"), filepath.Join(cmp.Or(env("HOME"), env("USERPROFILE")), ".codex"))
	text, _ := os.ReadFile(filepath.Join(home, "config.toml")) // without settings there is no such provider
	return string(text)
}

func keyIn(text string) (variable string, own bool) {
	name, provider := providerIn(text)
	if name == "" || name == "openai" || provider["requires_openai_auth"] == "true" {
		return "", false
	}
	return provider["env_key"], true
}

// providerIn returns the selected model provider from Codex's settings. It supports the usual subset of TOML:
// tables, dotted keys, and single-line strings.
func providerIn(text string) (name string, provider map[string]string) {
	table, values := "", map[string]string{}
	plain := strings.NewReplacer(`"`, "", "'", "", " ", "", "\t", "")
	for line := range strings.Lines(text) {
		name, value, isValue := strings.Cut(strings.TrimSpace(line), "=")
		switch {
		case strings.HasPrefix(name, "["):
			head, _, _ := strings.Cut(name, "#")
			table = strings.Trim(plain.Replace(head), "[]") + "."
		case isValue && !strings.HasPrefix(name, "#"):
			value, _, _ = strings.Cut(value, "#")
			values[table+plain.Replace(name)] = strings.TrimSpace(plain.Replace(value))
		}
	}
	name = values["model_provider"]
	if profile := values["profile"]; profile != "" {
		name = cmp.Or(values["profiles."+profile+".model_provider"], name)
	}
	provider = map[string]string{}
	for key, value := range values {
		if key, is := strings.CutPrefix(key, "model_providers."+name+"."); is {
			provider[key] = value
		}
	}
	return name, provider
}
