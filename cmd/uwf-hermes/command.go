package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// usualTurns is Hermes's limit of turns if the config sets none: its own default
// was 90 for long, and is 500 in newer versions.
const usualTurns = 90

// adapter describes Hermes Agent.
func adapter() cliagent.Adapter {
	return cliagent.Adapter{
		Name:    "hermes",
		Program: "hermes",
		Install: "curl -fsSL https://hermes-agent.nousresearch.com/install.sh | bash",
		Login:   "hermes setup",
		Probe:   cliagent.Probe{Help: []string{"chat", "--help"}},
		Command: command,
		Decoder: func(c cliagent.Call) cliagent.Decoder { return &decoder{call: c, stream: streams(c)} },
		Logins:  cliagent.ModelKeys(),
		Sessions: cliagent.Sessions{
			AnyDir: true,
			// A session that Hermes has compressed comes back as the one that it was
			// split into. Whether it is one of those, transcript finds out.
			Renames: func(cliagent.Version) bool { return true },
		},
		MaxTurns:   usualTurns,
		Unset:      []string{"HERMES_SESSION_*"},
		Transcript: transcript,
		Usage: `Runs "hermes chat" in the working directory, with --format stream-json where this
version has it, else with --quiet; arguments that it does not know are passed to
Hermes. The program is UWF_HERMES_BIN, else hermes on PATH.`,
	}
}

// streams reports whether this version prints JSON lines.
func streams(c cliagent.Call) bool {
	return strings.Contains(c.Help, "--format") && strings.Contains(c.Help, "stream-json")
}

func command(c cliagent.Call) (cliagent.Invocation, error) {
	args := []string{"chat"}
	inv := cliagent.Invocation{}
	switch {
	case streams(c) && strings.Contains(c.Help, "--query-file"):
		args, inv.Stdin = append(args, "--query-file", "-", "--format", "stream-json"), c.Prompt
	default:
		prompt, err := c.PromptArgument()
		if err != nil {
			return inv, err
		}
		args = append(args, "-q", prompt)
		if streams(c) {
			args = append(args, "--format", "stream-json")
		} else {
			args, inv.Silent = append(args, "--quiet"), true
		}
	}
	switch c.Permission {
	case cliagent.Readonly:
		return inv, &cliagent.Error{
			Program: "hermes", Text: `hermes has no switch that keeps it from changing files, so permission "readonly" cannot be held`,
			Hint: `set agents.<alias>.permission to "edits" or "bypass", or give the role to another agent`,
		}
	case cliagent.Bypass:
		args = append(args, "--yolo")
	}
	if c.MaxTurns > 0 {
		args = append(args, "--max-turns", strconv.Itoa(c.MaxTurns))
	}
	if c.Help == "" || strings.Contains(c.Help, "--source") {
		args = append(args, "--source", "tool") // keeps it out of the list of a person's own sessions
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

// transcript looks the session up where Hermes keeps it: the turns, which an older
// version does not print, the cost, and whether it is the session that was asked
// for. A store that is not there says nothing about a session.
func transcript(ctx context.Context, c cliagent.Call, o cliagent.Outcome) (cliagent.Transcript, error) {
	a := archive{home: c.Env("HERMES_HOME")}
	if a.home == "" {
		a.home = filepath.Join(cmp.Or(c.Env("HOME"), c.Env("USERPROFILE")), ".hermes")
	}
	s, err := a.load(ctx, o.Session)
	switch {
	case isMissing(err), o.Session == "": // it has named none
		return cliagent.Transcript{}, nil
	case errors.Is(err, errNoSession):
		return cliagent.Transcript{}, fmt.Errorf("session %s is not in %s: it cannot be continued, and only the answer is kept", o.Session, a.home)
	case err != nil:
		return cliagent.Transcript{}, err
	}
	t := cliagent.Transcript{Found: true, Model: s.model, Turns: turns(a.since(ctx, s, c.Prompt))}
	t.Usage = cliagent.Usage{Usage: s.usage, TokensOfSession: true, CostOfSession: true}
	if told := o.Usage.Usage; told != nil && s.usage != nil {
		run := *told // of this run alone; only the cost is the session's
		run.CostUSD = s.usage.CostUSD
		t.Usage = cliagent.Usage{Usage: &run, CostOfSession: true}
	}
	t.Fresh = c.Resume && o.Session != c.Session && !a.descends(ctx, s, c.Session)
	return t, nil
}
