// Command uwf-cursor is the uwf agent for Cursor's CLI. The engine starts it; see docs/agents.
package main

import (
	"strings"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:        "cursor",
		Program:     "cursor-agent",
		Aliases:     []string{"agent"},
		Install:     "curl https://cursor.com/install -fsS | bash",
		Login:       "cursor-agent login (or set CURSOR_API_KEY)",
		Probe:       cliagent.Probe{Help: []string{"--help"}},
		Logins:      []string{"CURSOR_API_KEY"},
		Command:     command,
		Decoder:     func(cliagent.Call) cliagent.Decoder { return &decoder{} },
		CountsTurns: true,
		Usage: `Runs "cursor-agent -p --output-format stream-json" in the working
directory. Also finds the program as "agent".`,
	}
}

// switches maps permissions to options. --trust alone lets Cursor change files and refuses commands; it also
// makes it start programs from the directory's settings.
var switches = map[cliagent.Permission][]string{
	cliagent.Bypass:   {"--force", "--trust"},
	cliagent.Edits:    {"--trust"},
	cliagent.Readonly: {"--trust", "--mode", "ask"},
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"-p", "--output-format", "stream-json"}
	for _, arg := range switches[c.Permission] {
		if has(c, arg) && (arg != "--trust" || c.Confined) {
			args = append(args, arg)
		}
	}
	if has(c, "--workspace") {
		args = append(args, "--workspace", c.Cwd)
	}
	if c.Model != "" {
		args = append(args, "--model", c.Model)
	}
	if c.Resume {
		args = append(args, "--resume", c.Session)
	}
	prompt, err := c.PromptArgument()
	if err != nil {
		return cliagent.Invocation{}, err
	}
	return cliagent.Invocation{Args: append(append(args, c.Extra...), prompt)}, nil
}

// has reports whether this version supports an option, according to its help: older ones reject unknown
// options. Options that restrict the permission are never omitted.
func has(c cliagent.Call, option string) bool {
	switch option {
	case "--trust", "--workspace":
		return c.Help == "" || strings.Contains(c.Help, option)
	}
	return true
}
