package main

import (
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// adapter describes the Gemini CLI.
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
		// A session belongs to the directory that it was begun in.
		Logins:      []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"},
		Sessions:    cliagent.Sessions{Preset: true},
		CountsTurns: true,
		Usage: `Runs "gemini --output-format stream-json" in the working directory; arguments
that it does not know are passed to the Gemini CLI. The program is UWF_GEMINI_BIN,
else gemini on PATH.`,
	}
}

// modes are what the CLI calls a permission. Without anybody to ask, "default"
// refuses what is not only reading.
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
		Env:  []string{"GEMINI_CLI_NO_RELAUNCH=1"}, // otherwise it starts itself again and hangs on as a grandchild
	}
	hand(c, &inv)
	return inv, nil
}
