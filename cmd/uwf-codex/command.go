package main

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// adapter describes the Codex CLI.
func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "codex",
		Program: "codex",
		Install: "npm install -g @openai/codex",
		Login:   "codex login (or set CODEX_API_KEY)",
		Probe: cliagent.Probe{
			Help:     []string{"exec", "--help"},
			Min:      cliagent.V(0, 50, 0), // before: another format, no way to continue, status 0 on errors
			LoggedIn: []string{"login", "status"},
			Flaws: []cliagent.Flaw{{
				Before: cliagent.V(0, 123, 0),
				Text:   "a session that it cannot find is replaced by a new one; uwf notices and starts over: npm install -g @openai/codex@latest",
			}, {
				Before: profiles,
				Text:   "with permission edits and readonly its commands can read keys: npm install -g @openai/codex@latest",
			}},
		},
		Command:     command,
		Distrusts:   func(cliagent.Version) bool { return true },
		Decoder:     func(c cliagent.Call) cliagent.Decoder { return &decoder{call: c} },
		Logins:      []string{"OPENAI_API_KEY", "CODEX_API_KEY"},
		OwnKey:      ownKey,
		Repeats:     repeats,
		Sessions:    cliagent.Sessions{Forks: true, AnyDir: true},
		CountsTurns: true,
		Usage: `Runs "codex exec --json" in the working directory; arguments that it does not
know are passed to Codex, before its subcommand. The program is UWF_CODEX_BIN, else
codex on PATH.`,
	}
}

// distrust says of a directory, and of those around it, that their settings, which name
// programs to start, are not to be obeyed.
func distrust(dir string) string {
	var entries []string
	for at := dir; ; at = filepath.Dir(at) {
		name, _ := json.Marshal(at) // a text always can be
		entries = append(entries, string(name)+`={trust_level="untrusted"}`)
		if at == filepath.Dir(at) {
			return "projects={" + strings.Join(entries, ",") + "}"
		}
	}
}

// profiles is the first version whose sandbox can be told what not to read.
var profiles = cliagent.V(0, 138, 0)

// sandbox are the switches for Codex's own sandbox. One that keeps no secret from what
// runs in it, which the version's may be, is a word to a person (Flaws).
func sandbox(c cliagent.Call, mode, profile string) []string {
	if c.Confined || !c.Version.AtLeast(profiles) {
		return []string{"-s", mode}
	}
	deny := make([]string, len(c.Hidden))
	for i, path := range c.Hidden {
		name, _ := json.Marshal(path) // a text always can be
		deny[i] = string(name) + `="deny"`
	}
	return []string{"-c", `default_permissions="uwf"`, "-c", `permissions.uwf={extends="` + profile + `",filesystem={` + strings.Join(deny, ",") + "}}"}
}

// command is the command line. All options stand before "resume" and "fork",
// which take none of them.
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
