// Command uwf-hermes is the uwf agent for Hermes Agent. The engine starts it; see docs/agents.
package main

import (
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func main() { agentkit.Run(cliagent.Options(adapter())) }

// usualTurns is the turn limit if the config sets none. It was Hermes's own default for a long time; newer
// versions use 500.
const usualTurns = 90

func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "hermes",
		Program: "hermes",
		Install: "curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash",
		Login:   "hermes setup",
		Probe:   cliagent.Probe{Help: []string{"chat", "--help"}},
		Command: command,
		Decoder: func(c cliagent.Call) cliagent.Decoder { return &decoder{call: c} },
		Logins:  cliagent.ModelKeys(),
		Sessions: cliagent.Sessions{
			AnyDir: true,
			// A session that Hermes has compressed comes back under another ID. An unknown ID is an error.
			Renames: true,
		},
		MaxTurns: usualTurns,
		Unset:    []string{"HERMES_SESSION_*"},
		Usage:    `Runs "hermes chat --format stream-json" in the working directory.`,
	}
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	inv := cliagent.Invocation{Stdin: c.Prompt}
	if c.Help != "" && !strings.Contains(c.Help, "stream-json") { // before August 2026
		return inv, &cliagent.Error{
			Program: "hermes", Kind: cliagent.TooOld, Hint: "hermes update",
			Text: "hermes is too old: it lacks --format stream-json",
		}
	}
	args := []string{"chat", "--query-file", "-", "--format", "stream-json"}
	switch c.Permission {
	case cliagent.Readonly:
		return inv, &cliagent.Error{
			Program: "hermes", Text: `hermes has no flag to prevent file changes, so it cannot run with permission "read-only"`,
			Hint: "uwf config set agents.<alias>.permission edits",
		}
	case cliagent.Bypass:
		args = append(args, "--yolo")
	}
	if c.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(c.MaxTurns))
	}
	if c.Help == "" || strings.Contains(c.Help, "--source") {
		args = append(args, "--source", "tool") // hides it from the list of the user's own sessions
	}
	if c.Model != "" {
		args = append(args, "-m", c.Model)
	}
	if c.Resume {
		args = append(args, "--resume", c.Session)
	}
	inv.Args = append(args, c.Extra...)
	return inv, nil
}
