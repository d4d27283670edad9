package cliagent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/threadid"
)

// split takes apart what stands on an agent's command line: the arguments that are
// configured for it, before and behind a "--", and what the engine adds at the
// end: thread and role, by position or by name.
func split(args []string) (before, behind, engines []string) {
	at := len(args)
	for i := len(args) - 1; i >= 0; i-- {
		if isEngines(args[i:]) {
			at = i
		}
	}
	before, engines = args[:at], args[at:]
	if i := slices.Index(before, "--"); i >= 0 {
		before, behind = before[:i], before[i+1:]
	}
	return slices.Clone(before), slices.Clone(behind), engines
}

// parse reads the command line of an agent.
func (s *steps) parse(args []string) (engines []string, err error) {
	before, behind, engines := split(args)
	if s.adapter.Commanded && len(behind) == 0 {
		before, behind = nil, before
	}
	if s.adapter.ParseArgs != nil {
		if before, err = s.adapter.ParseArgs(before); err != nil {
			return nil, err
		}
	}
	switch {
	case s.adapter.Commanded && len(before) > 0:
		return nil, fmt.Errorf("unexpected argument %q before --", before[0])
	case s.adapter.Commanded && len(behind) == 0:
		return nil, errors.New("the command is missing: put it behind --")
	}
	s.extra = append(before, behind...)
	return engines, nil
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
