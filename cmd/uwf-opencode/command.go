package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// configVar holds settings that opencode puts over those in its files.
const configVar = "OPENCODE_CONFIG_CONTENT"

// adapter describes opencode.
func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "opencode",
		Program: "opencode",
		Install: "npm install -g opencode-ai",
		Login:   "opencode auth login",
		Command: command,
		Decoder: func(cliagent.Call) cliagent.Decoder { return &decoder{} },
		// From another directory a session is not found, or hangs for ever.
		Logins:      cliagent.ModelKeys(),
		Sessions:    cliagent.Sessions{Forks: true},
		CountsTurns: true,
		Usage: `Runs "opencode run --format json" in the working directory; arguments that it
does not know are passed to opencode. The program is UWF_OPENCODE_BIN, else
opencode on PATH. The model is written as provider/model.`,
	}
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"run", "--format", "json"}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	if c.Resume {
		args = append(args, "-s", c.Session)
	}
	if c.Resume && c.Fork {
		args = append(args, "--fork")
	}
	if name := plugins(c.Cwd); name != "" && c.Env(projectVariable) == "" {
		return cliagent.Invocation{}, fmt.Errorf("%s holds programs that opencode would load: uwf does not let it\nhint: remove it; or say that it is trusted: %s: \"0\" in env of the agent", name, projectVariable)
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

// projectVariable keeps opencode from the settings of its directory. It loads plugins and
// tools from there all the same (1.18.34).
const projectVariable = "OPENCODE_DISABLE_PROJECT_CONFIG"

// plugins names what opencode would load from a directory, or one around it in the same
// repository; "": nothing.
func plugins(dir string) string {
	for at := dir; filepath.IsAbs(at); at = filepath.Dir(at) {
		for _, name := range []string{"plugin", "plugins", "tool", "tools"} {
			path := filepath.Join(at, ".opencode", name)
			if _, err := os.Lstat(path); err == nil {
				return path
			}
		}
		if _, err := os.Lstat(filepath.Join(at, ".git")); err == nil || at == filepath.Dir(at) {
			break
		}
	}
	return ""
}

// permissions say what is allowed. Nothing is left to be asked for: an unanswered
// question ends opencode's run without an answer. There is no sandbox, so that a
// shell is everything or nothing.
var permissions = map[cliagent.Permission]map[string]string{
	cliagent.Bypass: {"*": "allow"},
	cliagent.Edits: {"*": "deny", "read": "allow", "glob": "allow", "grep": "allow", "list": "allow", "lsp": "allow",
		"todoread": "allow", "todowrite": "allow", "skill": "allow", "edit": "allow"},
	cliagent.Readonly: {"*": "deny", "read": "allow", "glob": "allow", "grep": "allow", "list": "allow", "lsp": "allow",
		"todoread": "allow", "todowrite": "allow", "skill": "allow"},
}

// settings are those that the user has in the environment, with ours over them.
func settings(c cliagent.Call) (string, error) {
	all := map[string]any{}
	if own := c.Env(configVar); own != "" {
		if err := json.Unmarshal([]byte(own), &all); err != nil {
			return "", fmt.Errorf("%s in the environment is not a JSON object: %w", configVar, err)
		}
	}
	all["autoupdate"] = false
	all["permission"] = permissions[c.Permission]
	data, err := json.Marshal(all)
	return string(data), err
}
