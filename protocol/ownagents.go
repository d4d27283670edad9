package protocol

import "slices"

// ModelAgents are the agents of uwf's own that ask a model themselves, and so can
// only use what is in models of the config.
func ModelAgents() []string { return []string{"uwf-builtin", "uwf-react", "uwf-llm"} }

// Adapter is an agent of uwf's own that drives another agent's program.
type Adapter struct {
	Name    string
	Title   string // of the program, for people; "": it drives any program
	Program string // as it is started; "": the agent's arguments say it
	NoCost  bool   // the program does not report what it costs
}

// Adapters lists the adapters in the order of the menu of uwf setup. What is known of their
// programs' files is in util/programs.
func Adapters() []Adapter {
	return []Adapter{
		{Name: "uwf-claude-code", Title: "Claude Code", Program: "claude"},
		{Name: "uwf-codex", Title: "Codex", Program: "codex", NoCost: true},
		{Name: "uwf-gemini", Title: "Gemini CLI", Program: "gemini", NoCost: true},
		{Name: "uwf-cursor", Title: "Cursor", Program: "cursor-agent", NoCost: true},
		{Name: "uwf-opencode", Title: "opencode", Program: "opencode"},
		{Name: "uwf-hermes", Title: "Hermes", Program: "hermes"},
		{Name: "uwf-acp"},
		{Name: "uwf-exec"},
	}
}

// AdapterOf is the adapter of a name.
func AdapterOf(name string) (Adapter, bool) {
	all := Adapters()
	at := slices.IndexFunc(all, func(a Adapter) bool { return a.Name == name })
	if at < 0 {
		return Adapter{}, false
	}
	return all[at], true
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
func OwnAgents() []string {
	names := ModelAgents()
	for _, a := range Adapters() {
		names = append(names, a.Name)
	}
	return append(names, "uwf-mock")
}
