package steps

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/protocol"
)

// agentName is the name in the step node.
func agentName(flag, alias string, command []string) string {
	switch {
	case flag != "":
		return protocol.AgentName(flag)
	case alias != "":
		return protocol.AgentName(filepath.Base(alias))
	}
	return protocol.AgentName(programName(command))
}

// programName is what people call a program: greet for "./greet.sh", and for
// "sh greet.sh", too.
func programName(command []string) string {
	name := func(word string) string {
		base := filepath.Base(word)
		return strings.TrimSuffix(base, filepath.Ext(base))
	}
	switch {
	case len(command) == 0 || name(command[0]) == "":
		return "exec"
	case len(command) > 1 && isInterpreter(name(command[0])) && !strings.HasPrefix(command[1], "-") && name(command[1]) != "":
		return name(command[1])
	}
	return name(command[0])
}

func isInterpreter(name string) bool {
	return slices.Contains([]string{"sh", "bash", "dash", "zsh", "fish", "pwsh", "python", "python3", "node", "bun", "ruby", "perl"}, name)
}
