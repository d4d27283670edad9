package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/united-workforce/uwf/util/careful"
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
		Env:  []string{"GEMINI_CLI_NO_RELAUNCH=1"}, // else it starts itself again and hangs on as a grandchild
	}
	if c.Confined {
		if name := starts(c.Cwd); name != "" {
			return inv, fmt.Errorf("%s names programs, servers or variables that the Gemini CLI would take from the directory: uwf does not let it\nhint: remove it; or say that it is trusted: GEMINI_CLI_TRUST_WORKSPACE: \"true\" in env of the agent, and confine: off", name)
		}
		inv.Env = append(inv.Env, "GEMINI_CLI_TRUST_WORKSPACE=true") // else it does not work where nobody has trusted the directory
	}
	hand(c, &inv)
	return inv, nil
}

// harmful are parts of the names of settings that start programs, and what can hide them.
var harmful = regexp.MustCompile(`(?i)command|mcp|hook|sandbox|extension|\\u|"env`)

// starts names the file of a directory by which the CLI, once it trusts the directory,
// would start programs or take variables; "": none.
func starts(dir string) string {
	for _, name := range []string{"settings.json", ".env", "extensions", "hooks"} {
		path := filepath.Join(dir, ".gemini", name)
		if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if name == "settings.json" {
			text, err := careful.ReadFile(path, 1<<20, careful.NoFollow)
			if err == nil && !harmful.Match(text) {
				continue
			}
		}
		return ".gemini/" + name
	}
	return ""
}
