package workflow

import (
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/yamldoc"
)

// Hints for users of other tools: keys that have a different name or place in uwf.

// foreignKeys maps node keys of other tools to a suggestion.
func foreignKeys() map[string]string {
	config := func(key string) string { return "this belongs in config.yaml: " + key }
	const (
		script = "use run with the script as one text, and shell: bash or python3 if it isn't for sh"
		person = "use person: true, with the question as the prompt"
		edges  = "use the graph to order roles: first: second"
		when   = "use when on an edge of a list, or on a part of all"
		who    = "use goal for who the agent is, procedure for how it works, prompt for what it is asked"
	)
	return map[string]string{
		"model": config("modelOverrides: {<workflow>.<role>: <model>}"), "effort": config("agents: {<name>: {args: […]}}"),
		"tools":    config("agents: {<name>: {permission: read-only}}"),
		"provider": config("agentOverrides: {<workflow>: {<role>: <agent>}}"),
		"agent":    config("agentOverrides: {<workflow>: {<role>: <agent>}}"),
		"timeout":  config("agents: {<name>: {timeout: 10m}}"),
		"retry":    config("agents: {<name>: {retry: {attempts: 3}}}"),
		"env":      `use env with a command: run: […], env: {NAME: "{{x}}"}`,
		"bash":     script, "script": script, "command": script, "shell": script,
		"approval": person, "human": person, "human_gate": person,
		"depends_on": edges, "depends": edges, "needs": edges, "next": edges, "routes": edges,
		"system": who, "system_prompt": who, "instructions": who,
		"prompt": "use prompt on a role, an edge, or a part of all or each",
		"if":     when, "when": when, "condition": when,
		"loop": "use an edge to an earlier role",
	}
}

// comingFrom refers to the page that explains other tools' terms.
const comingFrom = "to translate its keys: uwf guide coming-from"

// foreignTool returns the name of the tool that a workflow file belongs to, and the key that reveals it; ""
// if unknown.
func foreignTool(root *yamldoc.Node) (tool string, at yamldoc.Pos) {
	has := map[string]yamldoc.Entry{}
	for _, e := range root.Entries {
		has[e.Key] = e
	}
	for _, own := range []string{"roles", "graph", "moderator"} {
		if _, ours := has[own]; ours {
			return "", at
		}
	}
	_, alsoWorkflow := has["workflow"]
	for _, t := range []struct {
		tool, key string
		kind      yamldoc.Kind
		is        bool
	}{
		{"Archon", "nodes", yamldoc.Sequence, true}, {"Conductor", "agents", yamldoc.Sequence, alsoWorkflow},
		{"GitHub Actions", "jobs", yamldoc.Mapping, true}, {"Dagu", "steps", yamldoc.Sequence, isDagu(has["steps"].Value)},
	} {
		if e, ok := has[t.key]; ok && t.is && e.Value.Kind == t.kind {
			return t.tool, e.Pos
		}
	}
	return "", at
}

// isDagu reports whether the steps of a file are Dagu's. A uwf-mock script has steps as well.
func isDagu(steps *yamldoc.Node) bool {
	return steps != nil && slices.ContainsFunc(steps.Items, func(step *yamldoc.Node) bool {
		return slices.ContainsFunc(step.Entries, func(e yamldoc.Entry) bool {
			return slices.Contains([]string{"command", "script", "depends", "call", "run", "executor"}, e.Key)
		})
	})
}

// isDot reports whether a text is a Graphviz graph, the format of Fabro's workflows.
func isDot(text []byte) bool {
	rest := string(text)
	for {
		rest = strings.TrimSpace(rest)
		switch {
		case strings.HasPrefix(rest, "//"), strings.HasPrefix(rest, "#"):
			_, rest, _ = strings.Cut(rest, "\n")
		case strings.HasPrefix(rest, "/*"):
			_, rest, _ = strings.Cut(rest, "*/")
		default:
			name, body, found := strings.Cut(strings.TrimPrefix(rest, "strict "), "{")
			return found && strings.HasPrefix(name, "digraph") && strings.Contains(body, "}")
		}
	}
}
