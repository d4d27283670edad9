// Package acp runs any program that speaks the Agent Client Protocol (version 1) as an agent: JSON-RPC
// messages, one per line, over the program's stdin and stdout.
//
//	uwf-acp -- gemini --acp
//
// Guarantees:
//   - permission requests are answered at once, from the agent's configured permission;
//     nothing waits for a person, and an option is chosen by its kind, never by its position;
//   - the program can read and write files only in the step's working directory,
//     whatever the permission;
//   - a replay of an earlier conversation is not part of the answer;
//   - a session is opened once per step: corrections go to the running program;
//   - memory use is independent of how much the program prints, and a step always ends.
//
// The protocol is read leniently (wire.go) because agents deviate from the specification and from each other.
// Package cliagent does the rest: processes, turns, sessions, watchdogs, outcomes.
//
// The protocol is implemented here because the Go SDK (coder/acp-go-sdk 0.13) closes the connection on a line
// of 10 MiB or on 1024 queued notifications (a replay has more), and drops a whole update if one of its
// fields has an unexpected type.
package acp

import (
	"fmt"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// settings holds the arguments of uwf-acp that precede the command.
type settings struct {
	mode  string // session mode; "" chooses one that fits the permission
	auth  string // authentication method, or ""
	files bool   // advertise file access to the agent
}

// offers returns the capabilities that uwf announces. File requests are served regardless, within the
// permission; most agents work better with their built-in tools.
func (s settings) offers(p cliagent.Permission) capabilities {
	return capabilities{FS: fsCapabilities{Read: s.files, Write: s.files && p != cliagent.Readonly}}
}

const usageText = `Runs any agent that speaks the Agent Client Protocol. Its command follows "--":

  uwf-acp [options] -- gemini --acp
  uwf-acp [options] -- opencode acp
  uwf-acp [options] -- goose acp
  uwf-acp [options] -- claude-agent-acp
  uwf-acp [options] -- codex-acp
  uwf-acp [options] -- hermes acp

  --session-mode ID    mode of the session (default depends on the permission)
  --auth ID            authentication method to log in with
  --offer files        offer to read and write files for the agent`

// Adapter returns the adapter for agents that speak the protocol.
func Adapter() cliagent.Adapter {
	s := &settings{}
	return cliagent.Adapter{
		Name: "acp", Commanded: true,
		Install:     "install the program, or write its full path after --",
		Login:       "start the program in a terminal",
		Transport:   func() cliagent.Transport { return &transport{settings: *s} },
		Sessions:    cliagent.Sessions{Forks: true},
		CountsTurns: true,
		Unset:       []string{"CLAUDECODE", "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_SSE_PORT", "HERMES_SESSION_*"},
		Usage:       usageText,
		ParseArgs: func(args []string) ([]string, error) {
			return cliagent.TakeFlags(args, s.set, "--session-mode", "--auth", "--offer")
		},
	}
}

func (s *settings) set(name, value string) error {
	if value == "" {
		return fmt.Errorf("%s is empty", name)
	}
	switch name {
	case "--session-mode":
		s.mode = value
	case "--auth":
		s.auth = value
	case "--offer":
		if s.files = value == "files"; !s.files {
			return fmt.Errorf("%s: %q is unknown: want files", name, value)
		}
	}
	return nil
}
