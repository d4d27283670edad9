package protocol

import "slices"

// ModelAgents are the agents of uwf's own that ask a model themselves, and so can
// only use what is in models of the config.
func ModelAgents() []string { return []string{"uwf-builtin", "uwf-react", "uwf-llm"} }

// Adapters are the agents of uwf's own that drive another agent's program.
func Adapters() []string {
	return []string{"uwf-claude-code", "uwf-codex", "uwf-cursor", "uwf-gemini", "uwf-hermes", "uwf-opencode", "uwf-acp", "uwf-exec"}
}

// The names under which steps stand that the engine has made itself, for roles that no
// agent plays.
const (
	CommandAgent = AgentPrefix + "command"
	PersonAgent  = AgentPrefix + "person"
	JoinAgent    = AgentPrefix + "join" // of what several threads have answered
)

// IsEngine reports whether a name is one under which only the engine makes steps.
func IsEngine(agent string) bool {
	return agent == CommandAgent || agent == PersonAgent || agent == JoinAgent
}

// OwnAgents are all agents of uwf's own.
func OwnAgents() []string { return append(slices.Concat(ModelAgents(), Adapters()), "uwf-mock") }
