package protocol

// AgentCheck is what an agent that drives an external program says of it, as one
// JSON line, when it is started with [FlagCheck] alone.
type AgentCheck struct {
	Program  string         `json:"program"` // absolute path; "" if it was not found
	Version  string         `json:"version"` // "" if unknown
	Problems []AgentProblem `json:"problems"`
}

// AgentProblem is something that is wrong, with what to do.
type AgentProblem struct {
	What string `json:"what"`
	Do   string `json:"do"`
}

// ModulePath begins the import path of all that is in this project; programs
// are in ModulePath/cmd.
const ModulePath = "github.com/united-workforce/uwf"

// FlagCheck asks an agent about the program that it drives; see [AgentCheck].
const FlagCheck = "--check"

// Severity says what a finding means.
type Severity string

// The severities.
const (
	SeverityOK      Severity = "ok"
	SeverityNote    Severity = "note"    // worth knowing; everything works
	SeverityWarning Severity = "warning" // something does not work, or will not for long
	SeverityProblem Severity = "problem" // no step can be made
)

// Finding is one thing that the doctor has looked at.
type Finding struct {
	Area     string   `json:"area"` // home, store, threads, config, agents, models, disk, confinement
	Severity Severity `json:"severity"`
	What     string   `json:"what"`
	Do       string   `json:"do,omitempty"` // the remedy: a command, or what to change
	// ForAgents: only roles that an agent plays are affected.
	ForAgents bool `json:"forAgents,omitempty"`
}

// Diagnosis is the output of `uwf doctor`.
type Diagnosis struct {
	Healthy  bool      `json:"healthy"` // no finding is a problem
	Findings []Finding `json:"findings"`
}

// SetupOutput is the output of `uwf setup`.
type SetupOutput struct {
	ConfigPath   string           `json:"configPath"`
	Provider     string           `json:"provider,omitempty"`
	Model        string           `json:"model,omitempty"`
	DefaultAgent string           `json:"defaultAgent,omitempty"`
	Validation   *SetupValidation `json:"validation,omitempty"` // nil: the model was not tried
	May          string           `json:"may,omitempty"`        // what the agent may do
	Probe        *SetupProbe      `json:"probe,omitempty"`      // nil: no role was played
	Replaced     *SetupReplaced   `json:"replaced,omitempty"`   // nil: nothing that was in use
}

// SetupReplaced is the model that was in use before `uwf setup`.
type SetupReplaced struct {
	Alias    string `json:"alias"` // in models, where it still is
	Provider string `json:"provider"`
	Model    string `json:"model"`
	BaseURL  string `json:"baseUrl"` // the provider's address, before
}

// SetupProbe is a run of one role that answers one question.
type SetupProbe struct {
	OK     bool     `json:"ok"`
	Answer string   `json:"answer,omitempty"`
	Error  string   `json:"error,omitempty"`
	Hints  []string `json:"hints,omitempty"` // what to do about the error
}

// SetupValidation says whether the model answers.
type SetupValidation struct {
	OK    bool   `json:"ok"`
	Error string `json:"error,omitempty"`
}
