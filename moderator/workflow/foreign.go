package workflow

// What people write who know other tools: keys that are called something else here, or belong elsewhere.

// foreignKeys are keys of other tools' nodes, with what to write here.
func foreignKeys() map[string]string {
	config := func(key string) string { return "this is configuration; in config.yaml: " + key }
	const (
		script = `run: [sh, -c, "…"]`
		person = "person: true, and the question as the prompt"
		edges  = "the graph says what follows a role: first: second"
		when   = "when stands on an edge of a list, or on a part of all"
		who    = "goal says who the agent is, procedure how it works, and prompt what it is asked"
	)
	return map[string]string{
		"model": config("modelOverrides: {<workflow>.<role>: <model>}"), "effort": config("agents: {<name>: {args: […]}}"),
		"tools":    config("agents: {<name>: {permission: read-only}}"),
		"provider": config("agentOverrides: {<workflow>: {<role>: <agent>}}"),
		"agent":    config("agentOverrides: {<workflow>: {<role>: <agent>}}"),
		"timeout":  config("agents: {<name>: {timeout: 10m}}"),
		"retry":    config("agents: {<name>: {retry: {attempts: 3}}}"),
		"env":      `env belongs to a command: run: […], env: {NAME: "{{x}}"}`,
		"bash":     script, "script": script, "command": script, "shell": script,
		"approval": person, "human": person, "human_gate": person,
		"depends_on": edges, "depends": edges, "needs": edges, "next": edges, "routes": edges,
		"system": who, "system_prompt": who, "instructions": who,
		"prompt": "a prompt stands on a role, an edge, or a part of all or each",
		"if":     when, "when": when, "condition": when,
		"loop": "let an edge lead back to an earlier role",
	}
}
