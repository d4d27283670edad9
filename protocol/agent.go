package protocol

import (
	"encoding/json"
	"strings"
)

// The contract between the engine and an agent process.
//
//	<command> [configured args…] <thread-id> <role> [--prompt-ref <hash>]
//
// The agent does the role's work, writes its nodes and exactly one step node
// into the store in one commit, and prints a [Result] as its last line. Exit
// status 0 is success; anything else fails the step. It never writes
// threads.yaml: only the engine moves a head.
const (
	EnvHome      = "UWF_HOME"       // the home directory
	EnvStore     = "OCAS_HOME"      // the store's directory
	EnvHead      = "UWF_HEAD"       // hash of the node that the step must follow
	EnvRunDir    = "UWF_RUN_DIR"    // where the engine keeps this run's files
	EnvThread    = "UWF_THREAD"     // the thread's id, as in argv
	EnvRole      = "UWF_ROLE"       // the role, as in argv
	EnvPrompt    = "UWF_PROMPT_REF" // hash of a text node with the edge prompt, as in argv
	EnvAgent     = "UWF_AGENT"      // the agent's alias in the config; unset if it was named by command
	EnvBin       = "UWF_BIN"        // path of the uwf that started the agent
	EnvLimitBase = "UWF_LIMIT_BASE" // the limitBase that the step must have
	EnvInputs    = "UWF_INPUTS"     // the thread's inputs, a JSON object
	EnvVisitKey  = "UWF_VISIT_KEY"  // the same for all tries of a visit, for effects elsewhere
	EnvRetries   = "UWF_RETRIES"    // how often the engine runs the agent again in this visit after a failure that may pass
	EnvBudget    = "UWF_BUDGET"     // what the whole run may still cost, a [Budget] as JSON
	// EnvProject is the path of the project's config, which is beneath the user's; "": none.
	EnvProject = "UWF_PROJECT_CONFIG"
	// EnvSnapshot says where the state of the files is kept with the step, as JSON; "":
	// nowhere. The agent kit and "uwf step put" see to it.
	EnvSnapshot = "UWF_SNAPSHOT"
	// EnvCommand marks what a command of a model, or a role that is one, has started.
	EnvCommand = "UWF_COMMAND"
	// EnvStartedFor marks what agents of the kit start for a step: the run's directory.
	EnvStartedFor = "UWF_STARTED_FOR"
)

// Budget is what a run may still cost, all of its steps together; nil: nobody says.
type Budget struct {
	CostUSD *float64 `json:"costUsd"`
	Tokens  *int64   `json:"tokens"` // read and written, cached ones included
	TimeMs  *int64   `json:"timeMs"`
}

// ParseBudget reads [EnvBudget]. What cannot be read, such as that of a newer engine,
// says nothing: the engine holds the run to its limits in any case.
func ParseBudget(text string) Budget {
	var b Budget
	if json.Unmarshal([]byte(text), &b) != nil {
		return Budget{}
	}
	return b
}

// The flags of an agent. Thread, role and prompt are the original's named form.
const (
	FlagPromptRef = "--prompt-ref" // hash of a text node with the edge prompt
	FlagThread    = "--thread"
	FlagRole      = "--role"
	FlagPrompt    = "--prompt"
	FlagFormat    = "--format" // of the result line: json or yaml
)

// AgentPrefix begins the name of every agent, as a program and in step nodes.
const AgentPrefix = "uwf-"

// AgentName adds [AgentPrefix] unless it is there.
func AgentName(name string) string {
	return AgentPrefix + strings.TrimPrefix(name, AgentPrefix)
}

// Result is the last line that an agent prints. A failed agent prints one with
// Error, and RawHash for the text that could not be used.
type Result struct {
	StepHash   Hash   `json:"stepHash,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	DetailHash Hash   `json:"detailHash,omitempty"`
	Role       string `json:"role,omitempty"`
	Usage      *Usage `json:"usage,omitempty"`
	// Durable: the step and all that it names were flushed in one commit. If the
	// agent does not say so, the engine flushes them again before it moves the head.
	Durable bool `json:"durable,omitempty"`

	Error string `json:"error,omitempty"`
	// Kind is what sort of failure the error is, "" for one that would come again.
	// RetryAtMs is when the provider says that there is more, 0 if it does not.
	Kind      FailureKind `json:"kind,omitempty"`
	RetryAtMs int64       `json:"retryAtMs,omitempty"`
	// Repeated is how often the agent has repeated the request that failed: as if the engine had run it so
	// often. It counts toward retry.attempts.
	Repeated int `json:"repeated,omitempty"`

	Hints   []string `json:"hints,omitempty"` // what to do about the error, a line each: the agent's word, shown as that
	RawHash Hash     `json:"rawHash,omitempty"`
}

// FailureKind is why a try failed, if another one, or another agent, may not.
type FailureKind string

// The kinds. An agent tells the first two; of the others the engine knows.
const (
	FailedRateLimit FailureKind = "rate-limit" // the provider grants no more for a time
	FailedServer    FailureKind = "server"     // the provider's fault
	FailedCrash     FailureKind = "crash"      // the agent ended without a result
	FailedTimeout   FailureKind = "timeout"
	FailedMachine   FailureKind = "machine" // a program, a login, a sandbox or space is missing on this machine
)

// Extraction is what "uwf step extract" prints: what a model has read in an answer,
// or why there is nothing of it.
type Extraction struct {
	Value any    `json:"value,omitempty"` // a JSON value that satisfies the role's schema
	Model string `json:"model,omitempty"` // its alias in the config
	Usage *Usage `json:"usage"`           // also of an extraction that failed
	Error string `json:"error,omitempty"`
}

// TurnLine announces a node as it happens, for live views and for what an agent
// that is killed leaves. Agents may print any number of them, anywhere on stdout;
// other lines are ignored.
type TurnLine struct {
	UWF  string `json:"uwf"` // "turn"; "writing": a turn that is not finished; "request": a text
	Hash Hash   `json:"hash"`
}

// NewTurnLine returns the line for a turn node.
func NewTurnLine(h Hash) TurnLine { return TurnLine{UWF: "turn", Hash: h} }

// NewWritingLine returns the line for a turn that the agent is still writing.
// The turn as it stands is a node of its own, with the index that the finished
// one will have; no step refers to it.
func NewWritingLine(h Hash) TurnLine { return TurnLine{UWF: "writing", Hash: h} }

// NewRequestLine returns the line for a text about the run: the prompt first,
// then what the agent reports its questions to a model. In the detail it is one
// of the requests.
func NewRequestLine(h Hash) TurnLine { return TurnLine{UWF: "request", Hash: h} }
