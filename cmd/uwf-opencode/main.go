// Command uwf-opencode is the uwf agent for opencode. The engine starts it; see docs/agents.
package main

import (
	"slices"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

// configVar is the environment variable with settings that override those in opencode's files.
const configVar = "OPENCODE_CONFIG_CONTENT"

func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "opencode",
		Program: "opencode",
		Install: "npm install -g opencode-ai",
		Login:   "opencode auth login",
		Command: command,
		Decoder: func(cliagent.Call) cliagent.Decoder { return &decoder{} },
		Logins:  cliagent.ModelKeys(),
		// Not AnyDir: in another directory, opencode doesn't find the session or hangs.
		Sessions:    cliagent.Sessions{Forks: true},
		CountsTurns: true,
		Usage: `Runs "opencode run --format json" in the working directory. Models are
written as provider/model.`,
	}
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"run", "--format", "json"}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	switch {
	case c.Resume:
		args = append(args, "-s", c.Session)
	case !slices.Contains(c.Extra, "--title"): // otherwise it asks its model for one and does not report the tokens
		args = append(args, "--title", "uwf")
	}
	if c.Resume && c.Fork {
		args = append(args, "--fork")
	}
	config, err := settings(c)
	if err != nil {
		return cliagent.Invocation{}, err
	}
	return cliagent.Invocation{
		Args: append(args, c.Extra...), Stdin: c.Prompt,
		Env: []string{configVar + "=" + config, "OPENCODE_DISABLE_AUTOUPDATE=1"},
	}, nil
}

// permissions maps permissions to opencode's settings. Each tool is allowed or denied, because an unanswered
// question ends the run. Only Bypass allows the shell: opencode has no sandbox, so a shell can do everything.
var permissions = map[cliagent.Permission]map[string]string{
	cliagent.Bypass: {"*": "allow"},
	cliagent.Edits: {"*": "deny", "read": "allow", "glob": "allow", "grep": "allow", "list": "allow", "lsp": "allow",
		"todoread": "allow", "todowrite": "allow", "skill": "allow", "edit": "allow"},
	cliagent.Readonly: {"*": "deny", "read": "allow", "glob": "allow", "grep": "allow", "list": "allow", "lsp": "allow",
		"todoread": "allow", "todowrite": "allow", "skill": "allow"},
}

// settings returns the value of configVar: the user's, changed by what a run under uwf needs.
func settings(c cliagent.Call) (string, error) {
	change := map[string]any{"autoupdate": false, "permission": permissions[c.Permission]}
	if c.Confined {
		change["snapshot"] = false // needs git repositories in its data directory, which it cannot write
	}
	return cliagent.OpencodeConfig(c.Env(configVar), change)
}
