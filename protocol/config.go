package protocol

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Config is <home>/config.yaml. Unknown keys are errors. The tag "is" lists the valid values of a string, or
// is "span" for a duration; an empty string means the default.
type Config struct {
	Providers      map[string]Provider          `json:"providers,omitempty"`
	Models         map[string]Model             `json:"models,omitempty"`
	Agents         map[string]Agent             `json:"agents,omitempty"`
	DefaultAgent   string                       `json:"defaultAgent,omitempty"`
	AgentOverrides map[string]map[string]string `json:"agentOverrides,omitempty"` // workflow → role → alias
	DefaultModel   string                       `json:"defaultModel,omitempty"`
	// ModelOverrides maps a use to a model: "extract", "agent" or "<workflow>.<role>".
	ModelOverrides map[string]string `json:"modelOverrides,omitempty"`
	// NetworkOverrides sets the network access of a role, by "<workflow>.<role>", regardless of its player.
	NetworkOverrides map[string]Network `json:"networkOverrides,omitempty"`
	Limits           *LimitsConfig      `json:"limits,omitempty"`            // defaults for workflows without their own
	Timeout          string             `json:"timeout,omitempty" is:"span"` // timeout of a step, such as "30m"; default none
	Builtin          *BuiltinConfig     `json:"builtin,omitempty"`
	Commands         *CommandsConfig    `json:"commands,omitempty"` // settings of command roles
	// Sandbox applies to everything that agents and commands run. Agents and Commands can override it.
	Sandbox *SandboxConfig `json:"sandbox,omitempty"`
	// AllowLocations lists directories, absolute or "~/…", in which steps may work although they are outside
	// of the thread's directory.
	AllowLocations []string         `json:"allowLocations,omitempty"`
	Concurrency    map[string]int   `json:"concurrency,omitempty"` // account → maximum number of concurrent agents
	Workspace      *WorkspaceConfig `json:"workspace,omitempty"`
	Artifacts      *ArtifactsConfig `json:"artifacts,omitempty"`
	Notify         *NotifyConfig    `json:"notify,omitempty"`
}

// ArtifactsConfig limits the files that the roles of a run share.
type ArtifactsConfig struct {
	MaxMB int `json:"maxMB,omitempty"` // no step starts above this size; 0 means 1024
}

// NotifyConfig configures notifications about threads at rest. Without it, none are sent.
type NotifyConfig struct {
	On      []string       `json:"on,omitempty" is:"waiting|error|failed|completed|limit"` // events to notify about; default all
	Command []string       `json:"command,omitempty"`                                      // program and arguments; receives a [Notice] as JSON on stdin
	Webhook *WebhookConfig `json:"webhook,omitempty"`
	Links   *LinksConfig   `json:"links,omitempty"`
}

// WebhookConfig is an address to which notifications are posted.
type WebhookConfig struct {
	URL    string `json:"url"`              // https, or http on this machine
	Secret string `json:"secret,omitempty"` // key that signs the posted body
}

// LinksConfig adds a link to notifications with which the question can be answered once.
type LinksConfig struct {
	Address   string `json:"address"`                       // address of a "uwf web --actions", such as https://uwf.example.org
	ExpiresIn string `json:"expiresIn,omitempty" is:"span"` // lifetime of a link; default 24h
}

// Events of a [NotifyConfig].
const (
	NoticeWaiting   = "waiting"   // waits for a person's answer
	NoticeError     = "error"     // a step failed and is not retried
	NoticeFailed    = "failed"    // the thread is at $FAIL
	NoticeCompleted = "completed" // the thread is at $END
	NoticeLimit     = "limit"     // a cost limit is reached
)

// WorkspaceConfig configures how the files of new threads are kept.
type WorkspaceConfig struct {
	Default     string            `json:"default,omitempty" is:"in-place|worktree|none"`     // in-place, worktree or none; "" means in-place in a git work tree
	PerWorkflow map[string]string `json:"perWorkflow,omitempty" is:"in-place|worktree|none"` // workflow → mode
	MaxFileMB   int               `json:"maxFileMB,omitempty"`                               // maximum size of an untracked file; 0 means 20
	Link        []string          `json:"link,omitempty"`                                    // directories to share with a new worktree, such as node_modules
	Setup       []string          `json:"setup,omitempty"`                                   // command to run once in a new worktree
}

// Provider is a model endpoint with OpenAI's chat completions API.
type Provider struct {
	BaseURL   string `json:"baseUrl"`
	APIKey    string `json:"apiKey,omitempty"`    // "${VAR}" reads the environment
	APIKeyEnv string `json:"apiKeyEnv,omitempty"` // name of the variable that contains the key
}

// Model is a model of a provider.
type Model struct {
	Provider      string `json:"provider"`
	Name          string `json:"name"`
	Stream        *bool  `json:"stream,omitempty"`                        // default true
	ContextWindow int    `json:"contextWindow,omitempty"`                 // tokens; 0 means unknown
	Price         *Price `json:"price,omitempty"`                         // for endpoints that report no cost
	CacheControl  string `json:"cacheControl,omitempty" is:"auto|on|off"` // "auto" (the default), "on" or "off"
	// IdleTimeout is the maximum time without data from the endpoint, such as "30m" for a slow one. "" means
	// 5m before a reply and 2m within it.
	IdleTimeout string `json:"idleTimeout,omitempty" is:"span"`
}

// Price is the price of a model in US dollars per million tokens. A missing cache price defaults to Input.
type Price struct {
	Input      float64  `json:"input"`
	Output     float64  `json:"output"`
	CacheRead  *float64 `json:"cacheRead,omitempty"`
	CacheWrite *float64 `json:"cacheWrite,omitempty"`
}

// Agent is a program that plays roles.
type Agent struct {
	Command string            `json:"command"`
	Args    []string          `json:"args,omitempty"`
	Timeout string            `json:"timeout,omitempty" is:"span"` // timeout of a step
	Env     map[string]string `json:"env,omitempty"`
	PassEnv []string          `json:"passEnv,omitempty"` // names of secrets in .env to pass to the agent
	// Protocol is the form of the command line. "positional" is the thread and the role only. "named" is
	// --thread, --role and --prompt, as agents of the original uwf require. "" is the positional form
	// followed by --prompt-ref.
	Protocol   string `json:"protocol,omitempty" is:"positional|named"`
	Model      string `json:"model,omitempty"`                                // alias in models, or an external program's own name for a model
	Permission string `json:"permission,omitempty" is:"full|edits|read-only"` // full, edits or read-only
	Resume     *bool  `json:"resume,omitempty"`                               // continue sessions; default true

	// For agents that run an external program. The limits apply to one run of it.
	MaxTurns     int     `json:"maxTurns,omitempty"`               // 0 means the adapter's default
	MaxCostUSD   float64 `json:"maxCostUsd,omitempty"`             // 0 means unlimited; only some programs support it
	StartTimeout string  `json:"startTimeout,omitempty" is:"span"` // until its first output
	IdleTimeout  string  `json:"idleTimeout,omitempty" is:"span"`  // without output
	// What to do when a try fails, and when the provider's rate limit is reached.
	Retry       *Retry   `json:"retry,omitempty"`
	OnRateLimit string   `json:"onRateLimit,omitempty" is:"stop|wait|fallback"` // stop, wait or fallback; default stop
	Fallback    []string `json:"fallback,omitempty"`                            // aliases; the first available one continues
	// FallbackOn lists the kinds of failures after which a fallback continues; default rate-limit, server and
	// crash. For rate-limit, onRateLimit must also be fallback.
	FallbackOn []string `json:"fallbackOn,omitempty" is:"rate-limit|server|crash"`
	// Account is the name of the agent's account at its provider. Agents with the same account share its
	// limits. The default is the name of the program, or of the model's provider.
	Account          string `json:"account,omitempty"`
	MaxRateLimitWait string `json:"maxRateLimitWait,omitempty" is:"span"` // maximum wait of a thread, such as "8h"; default 24h

	Sandbox *SandboxConfig `json:"sandbox,omitempty"` // overrides the global sandbox, key by key
}

// Retry configures how often a failing step is tried.
type Retry struct {
	Attempts int      `json:"attempts,omitempty"`                                // total number of tries; default 3
	Backoff  string   `json:"backoff,omitempty" is:"span"`                       // wait before the second try, doubled each time; default 5s
	On       []string `json:"on,omitempty" is:"rate-limit|server|crash|timeout"` // kinds of failures; default rate-limit and server
}

// Values of onRateLimit.
const (
	LimitStop     = "stop"
	LimitWait     = "wait"
	LimitFallback = "fallback"
)

// SandboxConfig configures what a sandbox allows.
type SandboxConfig struct {
	// Mode is "auto", "landlock", "required" or "none". The default is "auto", except for programs that uwf
	// doesn't know and programs with their own sandbox.
	Mode         string   `json:"mode,omitempty" is:"auto|landlock|required|none"`
	DenyRead     []string `json:"denyRead,omitempty"`             // additional paths that can be neither read nor written
	AllowRead    []string `json:"allowRead,omitempty"`            // exceptions from the hidden paths, such as ~/.ssh/config
	AllowWrite   []string `json:"allowWrite,omitempty"`           // additional writable paths; may start with ~/
	SharedMemory *bool    `json:"sharedMemory,omitempty"`         // share memory with your other programs, in both directions
	Caches       string   `json:"caches,omitempty" is:"own|user"` // for commands: "own" (the default), or "user" for the user's caches
	Network      Network  `json:"network,omitempty"`              // network access; default all
	Nest         *bool    `json:"nest,omitempty"`                 // allow nested sandboxes; default true for agent programs, else false
}

// Over returns s with missing keys taken from base. Both can be nil.
func (s *SandboxConfig) Over(base *SandboxConfig) SandboxConfig {
	var out SandboxConfig
	for _, from := range []*SandboxConfig{base, s} {
		if from == nil {
			continue
		}
		out.Mode, out.Caches = cmp.Or(from.Mode, out.Mode), cmp.Or(from.Caches, out.Caches)
		for _, list := range []struct{ to, from *[]string }{
			{&out.DenyRead, &from.DenyRead}, {&out.AllowRead, &from.AllowRead}, {&out.AllowWrite, &from.AllowWrite},
		} {
			if *list.from != nil {
				*list.to = *list.from
			}
		}
		if from.Network != nil {
			out.Network = from.Network
		}
		if from.SharedMemory != nil {
			out.SharedMemory = from.SharedMemory
		}
		if from.Nest != nil {
			out.Nest = from.Nest
		}
	}
	return out
}

// Holds reports whether a program must not start if it cannot be sandboxed at all.
func (s SandboxConfig) Holds() bool { return s.Mode == SandboxLandlock || s.Mode == SandboxRequired }

// SharesMemory reports whether SharedMemory is true.
func (s SandboxConfig) SharesMemory() bool { return s.SharedMemory != nil && *s.SharedMemory }

// Nests reports whether programs can create nested sandboxes; unset is the default if Nest is nil.
func (s SandboxConfig) Nests(unset bool) bool {
	if s.Nest == nil {
		return unset
	}
	return *s.Nest
}

// Modes of a [SandboxConfig].
const (
	SandboxAuto     = "auto"     // as strict as the system supports
	SandboxLandlock = "landlock" // at least Landlock, or the program doesn't start
	SandboxRequired = "required" // namespaces, or the program doesn't start
	SandboxNone     = "none"
)

// Network is the network access of a sandboxed program: {[NetworkAll]}, {[NetworkNone]}, or a list of host,
// host:port, *.host and host:*. In a config, the two words are written without a list. Nil means unset.
type Network []string

// Special values of a [Network].
const (
	NetworkAll  = "all"
	NetworkNone = "none"
)

// All reports whether the access is unrestricted.
func (n Network) All() bool { return n == nil || slices.Equal(n, Network{NetworkAll}) }

// Hosts returns the reachable hosts if the access is restricted to some.
func (n Network) Hosts() []string {
	if n.All() || slices.Equal(n, Network{NetworkNone}) {
		return nil
	}
	return n
}

func (n Network) String() string {
	switch {
	case n.All():
		return NetworkAll
	case len(n.Hosts()) == 0:
		return NetworkNone
	}
	return strings.Join(n, ", ")
}

// CommandsConfig configures command roles.
type CommandsConfig struct {
	Sandbox *SandboxConfig `json:"sandbox,omitempty"` // overrides the global sandbox, key by key
	// PassEnv lists secret variables to pass to commands nevertheless, by "<workflow>.<role>", "<workflow>",
	// or "<hash>.<role>".
	PassEnv map[string][]string `json:"passEnv,omitempty"`
}

// BuiltinConfig configures uwf-builtin and uwf-react. The zero value is the default. The limits apply to one
// step. When one is reached, the thread is suspended, and resuming it grants the same amount again.
type BuiltinConfig struct {
	AllowCommands []string `json:"allowCommands,omitempty"` // programs that run_command may start; * means any
	Capabilities  []string `json:"capabilities,omitempty"`  // capabilities that root's commands keep, such as chown
	// NoUnixSockets keeps commands from creating unix sockets and from connecting to any. It defaults to true if
	// the sandbox is required and the kernel cannot isolate them from the sockets of other programs.
	NoUnixSockets *bool    `json:"noUnixSockets,omitempty"`
	PassEnv       []string `json:"passEnv,omitempty"`                    // secret variables to pass to commands nevertheless
	Instructions  string   `json:"instructions,omitempty" is:"auto|off"` // "auto" (the default) reads AGENTS.md and CLAUDE.md; "off" doesn't
	AllowFetch    bool     `json:"allowFetch,omitempty"`                 // allow fetch_url for public pages
	AllowPrivate  bool     `json:"allowPrivate,omitempty"`               // also allow it for this machine and its network
	MaxTurns      int      `json:"maxTurns,omitempty"`                   // default 30
	MaxContinue   int      `json:"maxContinueTurns,omitempty"`           // turns for correcting an answer; default 5
	MaxTokens     int      `json:"maxTokens,omitempty"`                  // input and output; 0 means unlimited
	MaxCostUSD    float64  `json:"maxCostUsd,omitempty"`                 // 0 means unlimited
	MaxTime       string   `json:"maxTime,omitempty" is:"span"`          // such as "20m"; "" means unlimited
}

// The contract between the engine and an agent process.
//
//	<command> [configured args…] <thread-id> <role> [--prompt-ref <hash>]
//
// The agent does the role's work, writes its nodes and exactly one step node into the store in one commit,
// and prints a [Result] as its last line. Exit status 0 means success; any other fails the step. The agent
// never writes threads.yaml: only the engine moves a head.
const (
	EnvHome      = "UWF_HOME"       // the home directory
	EnvStore     = "OCAS_HOME"      // the store's directory
	EnvHead      = "UWF_HEAD"       // hash of the node that the step must follow
	EnvRunDir    = "UWF_RUN_DIR"    // directory of the engine's files for this run
	EnvThread    = "UWF_THREAD"     // ID of the thread, as in argv
	EnvRole      = "UWF_ROLE"       // the role, as in argv
	EnvPrompt    = "UWF_PROMPT_REF" // hash of a text node with the edge prompt, as in argv
	EnvAgent     = "UWF_AGENT"      // the agent's alias in the config; unset if it was given as a command line
	EnvBin       = "UWF_BIN"        // path of the uwf that started the agent
	EnvLimitBase = "UWF_LIMIT_BASE" // limitBase that the step must have
	EnvInputs    = "UWF_INPUTS"     // inputs of the thread, a JSON object
	// EnvArtifacts is a directory for files that the roles of a run share. Snapshots and remotes don't
	// contain it.
	EnvArtifacts = "UWF_ARTIFACTS_DIR"
	EnvVisitKey  = "UWF_VISIT_KEY" // the same for all tries of a visit, for external effects
	// EnvRetries is the number of times that the engine would run the agent again in this visit after a
	// temporary failure.
	EnvRetries = "UWF_RETRIES"
	EnvBudget  = "UWF_BUDGET" // remaining budget of the whole run, a [Budget] as JSON
	// EnvProject is the path of the project config, which the user's config overrides; "" means none.
	EnvProject = "UWF_PROJECT_CONFIG"
	// EnvSnapshot holds the snapshot settings of the step as JSON; "" means no snapshot. The agent kit and
	// "uwf step put" use it.
	EnvSnapshot = "UWF_SNAPSHOT"
	// EnvCommand marks the processes of a model's command or of a command role.
	EnvCommand = "UWF_COMMAND"
	// EnvStartedFor marks the processes that the kit's agents start for a step. It holds the run directory.
	EnvStartedFor = "UWF_STARTED_FOR"
)

// Budget is the remaining budget of a run, for all its steps together. Nil values are unlimited or unknown.
type Budget struct {
	CostUSD *float64 `json:"costUsd"`
	Tokens  *int64   `json:"tokens"` // input and output, including cached ones
	TimeMs  *int64   `json:"timeMs"`
}

// ParseBudget parses [EnvBudget]. It returns the zero value for an unreadable budget, for example from a
// newer engine; the engine enforces the limits in any case.
func ParseBudget(text string) Budget {
	var b Budget
	if json.Unmarshal([]byte(text), &b) != nil {
		return Budget{}
	}
	return b
}

// Flags of an agent. Thread, role and prompt belong to the original uwf's named form.
const (
	FlagPromptRef = "--prompt-ref" // hash of a text node with the edge prompt
	FlagThread    = "--thread"
	FlagRole      = "--role"
	FlagPrompt    = "--prompt"
	FlagFormat    = "--format" // format of the result line: json or yaml
)

// AgentPrefix is the prefix of the names of all agents, both as programs and in step nodes.
const AgentPrefix = "uwf-"

// AgentName adds [AgentPrefix] if it is missing.
func AgentName(name string) string {
	return AgentPrefix + strings.TrimPrefix(name, AgentPrefix)
}

// Result is the last line that an agent prints. A failed agent sets Error, and RawHash for a text that was
// unusable.
type Result struct {
	StepHash   Hash   `json:"stepHash,omitempty"`
	SessionID  string `json:"sessionId,omitempty"`
	DetailHash Hash   `json:"detailHash,omitempty"`
	Role       string `json:"role,omitempty"`
	Usage      *Usage `json:"usage,omitempty"`
	// Durable means that the step and all its nodes were flushed in one commit. If it is not set, the engine
	// flushes them again before it moves the head.
	Durable bool `json:"durable,omitempty"`

	Error string `json:"error,omitempty"`
	// Kind is the kind of a failure; "" if a retry would fail the same way. RetryAtMs is when the provider's
	// limit resets, in Unix milliseconds; 0 if unknown.
	Kind      FailureKind `json:"kind,omitempty"`
	RetryAtMs int64       `json:"retryAtMs,omitempty"`
	// Repeated is the number of times that the agent itself has repeated a failed request. These repetitions count toward
	// retry.attempts.
	Repeated int `json:"repeated,omitempty"`

	Hints   []string `json:"hints,omitempty"` // remedies for the error, one line each; displayed as the agent's words
	RawHash Hash     `json:"rawHash,omitempty"`
}

// FailureKind is the reason of a failure that another try or another agent may avoid.
type FailureKind string

// Kinds of failures. An agent reports the first two and machine; the engine detects the others.
const (
	FailedRateLimit FailureKind = "rate-limit" // the provider refuses for some time
	FailedServer    FailureKind = "server"     // an error of the provider
	FailedCrash     FailureKind = "crash"      // the agent ended without a result
	FailedTimeout   FailureKind = "timeout"
	FailedMachine   FailureKind = "machine" // a program, a login, a sandbox or space is missing on this machine
)

// Extraction is the output of "uwf step extract": what a model has extracted from an answer, or an error.
type Extraction struct {
	Value any    `json:"value,omitempty"` // JSON value that is valid for the role's schema
	Model string `json:"model,omitempty"` // alias in the config
	Usage *Usage `json:"usage"`           // also set for a failed extraction
	Error string `json:"error,omitempty"`
}

// TurnLine announces a node as soon as it exists, for live views and in case the agent is killed. Agents can
// print any number of them, anywhere on stdout; other lines are ignored.
type TurnLine struct {
	UWF  string `json:"uwf"` // "turn", "writing" for a turn in progress, or "request" for a text
	Hash Hash   `json:"hash"`
}

// NewTurnLine returns the line for a turn node.
func NewTurnLine(h Hash) TurnLine { return TurnLine{UWF: "turn", Hash: h} }

// NewWritingLine returns the line for a turn in progress. Its current content is a separate node with the
// index of the finished one; no step refers to it.
func NewWritingLine(h Hash) TurnLine { return TurnLine{UWF: "writing", Hash: h} }

// NewRequestLine returns the line for a text about the run: the prompt first, then the agent's calls of a
// model. The detail lists them as requests.
func NewRequestLine(h Hash) TurnLine { return TurnLine{UWF: "request", Hash: h} }

// ModelAgents lists uwf's agents that call a model themselves. They can only use models of the config.
func ModelAgents() []string { return []string{"uwf-builtin", "uwf-react", "uwf-llm"} }

// Adapter is one of uwf's agents that drives another agent's program.
type Adapter struct {
	Name    string
	Title   string // name of the program for display; "" if it drives any program
	Program string // command name; "" if the agent's arguments contain it
	NoCost  bool   // the program doesn't report its cost
}

// Adapters lists the adapters in the order of the menu of uwf setup. Package util/programs knows the files of
// their programs.
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

// AdapterOf returns the adapter with a name.
func AdapterOf(name string) (Adapter, bool) {
	all := Adapters()
	at := slices.IndexFunc(all, func(a Adapter) bool { return a.Name == name })
	if at < 0 {
		return Adapter{}, false
	}
	return all[at], true
}

// Agent names of steps that the engine makes itself.
const (
	CommandAgent = AgentPrefix + "command"
	PersonAgent  = AgentPrefix + "person"
	JoinAgent    = AgentPrefix + "join" // joins the answers of several threads
)

// IsEngine reports whether only the engine makes steps with this agent name.
func IsEngine(agent string) bool {
	return agent == CommandAgent || agent == PersonAgent || agent == JoinAgent
}

// OwnAgents lists all of uwf's agents.
func OwnAgents() []string {
	names := ModelAgents()
	for _, a := range Adapters() {
		names = append(names, a.Name)
	}
	return append(names, "uwf-mock")
}
