package external

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// split takes apart what stands on an agent's command line: the arguments that
// are configured for it, then what the engine adds: thread and role, by position
// or by name. A "--" before the configured ones is dropped; behind it they may
// look like flags of the agent's own. If they are a command (commanded), what
// stands before the "--" is the agent's own.
func split(args []string, commanded bool) (own, command, rest []string, err error) {
	at := len(args)
	for i := len(args) - 1; i >= 0; i-- {
		if isEngines(args[i:]) {
			at = i
		}
	}
	own, rest = slices.Clone(args[:at]), args[at:]
	i := slices.Index(own, "--")
	switch {
	case !commanded && i == 0:
		own = own[1:]
	case commanded && i >= 0:
		own, command = own[:i], own[i+1:]
	case commanded:
		own, command = nil, own
	}
	if commanded && len(command) == 0 {
		return nil, nil, nil, errors.New("the command is missing: put it behind --")
	}
	return own, command, rest, nil
}

// isEngines reports whether arguments are just what the engine adds.
func isEngines(args []string) bool {
	if len(args) >= 2 && threadid.Valid(args[0]) && !strings.HasPrefix(args[1], "-") {
		args = args[2:]
	} else if len(args) > 0 && name(args[0]) != protocol.FlagThread {
		return false
	}
	for len(args) > 0 {
		if !slices.Contains([]string{
			protocol.FlagThread, protocol.FlagRole, protocol.FlagPrompt, protocol.FlagPromptRef, protocol.FlagFormat,
		}, name(args[0])) {
			return false
		}
		if strings.Contains(args[0], "=") {
			args = args[1:]
			continue
		}
		if len(args) < 2 {
			return false
		}
		args = args[2:]
	}
	return true
}

func name(flag string) string {
	name, _, _ := strings.Cut(flag, "=")
	return name
}

// usage is what --help says of an adapter.
func usage(a Adapter) string {
	var b strings.Builder
	b.WriteString(strings.TrimRight(a.Usage, "\n"))
	if b.Len() > 0 {
		b.WriteString("\n\n")
	}
	if !a.Commanded {
		fmt.Fprintf(&b, "Arguments before the thread are given to %s; put -- before them if they look like\nflags of this agent. %s names the program if it is not on PATH.\n", a.Program, binVariable(a.Name))
	}
	if a.Install != "" {
		fmt.Fprintf(&b, "\n  install: %s\n", a.Install)
	}
	if a.Login != "" {
		fmt.Fprintf(&b, "  log in:  %s\n", a.Login)
	}
	return b.String()
}
