package subagents

import "slices"

// The permissions of an agent in config.yaml that are narrower than all.
const (
	readOnly = "read-only"
	edits    = "edits"
)

// reading and editing are Claude Code's own tools; all others may do anything.
func reading() []string {
	return []string{"Read", "Grep", "Glob", "LS", "NotebookRead", "WebFetch", "WebSearch", "TodoWrite", "TodoRead", "AskUserQuestion"}
}

func editing() []string { return []string{"Edit", "Write", "MultiEdit", "NotebookEdit"} }

// permission is the narrowest with which all tools work that a subagent has. One
// without a list has every tool that is not taken from it.
func permission(listed bool, tools, disallowed []string) string {
	if !listed {
		tools = append(editing(), "Bash")
	}
	need := readOnly
	for _, tool := range tools {
		switch {
		case slices.Contains(disallowed, tool), slices.Contains(reading(), tool):
		case slices.Contains(editing(), tool):
			need = edits
		default:
			return ""
		}
	}
	return need
}
