package protocol

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
)

// Config is <home>/config.yaml. Unknown keys are errors. A tag "is" has the words that a text can
// be, or "span" for a length of time; empty is the default.
type Config struct {
	Providers      map[string]Provider          `json:"providers,omitempty"`
	Models         map[string]Model             `json:"models,omitempty"`
	Agents         map[string]Agent             `json:"agents,omitempty"`
	DefaultAgent   string                       `json:"defaultAgent,omitempty"`
	AgentOverrides map[string]map[string]string `json:"agentOverrides,omitempty"` // workflow → role → alias
	DefaultModel   string                       `json:"defaultModel,omitempty"`
	// ModelOverrides maps a scenario to a model: "extract", "agent" or
	// "<workflow>.<role>".
	ModelOverrides map[string]string `json:"modelOverrides,omitempty"`
	// NetworkOverrides sets what a role can reach, whoever plays it: "<workflow>.<role>".
	NetworkOverrides map[string]Network `json:"networkOverrides,omitempty"`
	Limits           *LimitsConfig      `json:"limits,omitempty"`            // defaults for workflows without their own
	Timeout          string             `json:"timeout,omitempty" is:"span"` // of a step, such as "30m"; default none
	Builtin          *BuiltinConfig     `json:"builtin,omitempty"`
	Commands         *CommandsConfig    `json:"commands,omitempty"` // roles that are commands
	// Sandbox holds for all that agents and commands run; Agents and Commands override it.
	Sandbox *SandboxConfig `json:"sandbox,omitempty"`
	// AllowLocations are directories, absolute or "~/…", below which a step may work
	// although they lie outside of its thread's directory.
	AllowLocations []string         `json:"allowLocations,omitempty"`
	Concurrency    map[string]int   `json:"concurrency,omitempty"` // account → how many of its agents run at once
	Workspace      *WorkspaceConfig `json:"workspace,omitempty"`
	Artifacts      *ArtifactsConfig `json:"artifacts,omitempty"`
	Notify         *NotifyConfig    `json:"notify,omitempty"`
}

// ArtifactsConfig bounds what the roles of a run leave each other.
type ArtifactsConfig struct {
	MaxMB int `json:"maxMB,omitempty"` // with more, no step begins; 0: 1024
}

// NotifyConfig says who is told that a thread has come to rest. Without it nobody is.
type NotifyConfig struct {
	On      []string       `json:"on,omitempty" is:"waiting|error|failed|completed|limit"` // what is told; default: all
	Command []string       `json:"command,omitempty"`                                      // a program with its arguments; it gets a [Notice] as JSON on stdin
	Webhook *WebhookConfig `json:"webhook,omitempty"`
	Links   *LinksConfig   `json:"links,omitempty"`
}

// WebhookConfig is an address to which notices are posted.
type WebhookConfig struct {
	URL    string `json:"url"`              // https, or http on this machine
	Secret string `json:"secret,omitempty"` // signs what is posted
}

// LinksConfig makes notices carry a link by which the question is answered once.
type LinksConfig struct {
	Address   string `json:"address"`                       // where a "uwf web --actions" can be reached, such as https://uwf.example.org
	ExpiresIn string `json:"expiresIn,omitempty" is:"span"` // how long a link counts; default 24h
}

// What a [NotifyConfig] tells.
const (
	NoticeWaiting   = "waiting"   // for a person's answer
	NoticeError     = "error"     // a step has, and is not tried again
	NoticeFailed    = "failed"    // the thread is at $FAIL
	NoticeCompleted = "completed" // the thread is at $END
	NoticeLimit     = "limit"     // it has cost what it may
)

// WorkspaceConfig says how the files of new threads are kept.
type WorkspaceConfig struct {
	Default     string            `json:"default,omitempty" is:"in-place|worktree|none"`     // in-place, worktree or none; "": in-place in a git work tree
	PerWorkflow map[string]string `json:"perWorkflow,omitempty" is:"in-place|worktree|none"` // workflow → mode
	MaxFileMB   int               `json:"maxFileMB,omitempty"`                               // MB of a file that git does not track; 0: 20
	Link        []string          `json:"link,omitempty"`                                    // directories that a new worktree shares, such as node_modules
	Setup       []string          `json:"setup,omitempty"`                                   // a command that runs once in a new worktree
}

// Provider is a model endpoint that speaks OpenAI's chat completions.
type Provider struct {
	BaseURL   string `json:"baseUrl"`
	APIKey    string `json:"apiKey,omitempty"`    // "${VAR}" reads the environment
	APIKeyEnv string `json:"apiKeyEnv,omitempty"` // name of the variable that holds it
}

// Model is one model of a provider.
type Model struct {
	Provider      string `json:"provider"`
	Name          string `json:"name"`
	Stream        *bool  `json:"stream,omitempty"`                        // default true
	ContextWindow int    `json:"contextWindow,omitempty"`                 // tokens; 0: unknown
	Price         *Price `json:"price,omitempty"`                         // for endpoints that report no cost
	CacheControl  string `json:"cacheControl,omitempty" is:"auto|on|off"` // "auto" (the default), "on" or "off"
	// IdleTimeout is how long the endpoint may be silent, such as "30m" for a slow
	// one; "": 5m before a reply, 2m within it.
	IdleTimeout string `json:"idleTimeout,omitempty" is:"span"`
}

// Price is what a model costs, in US dollars per million tokens. A cache price
// that is not given is that of Input.
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
	Timeout string            `json:"timeout,omitempty" is:"span"` // of a step
	Env     map[string]string `json:"env,omitempty"`
	PassEnv []string          `json:"passEnv,omitempty"` // secrets of .env that the agent gets, by name
	// Protocol is the form of the command line: "positional" is the thread and the
	// role and nothing else, "named" is --thread, --role and --prompt, as agents of the
	// original want it; empty is the first with --prompt-ref behind it.
	Protocol   string `json:"protocol,omitempty" is:"positional|named"`
	Model      string `json:"model,omitempty"`                                // an alias in models, or an external program's own name of a model
	Permission string `json:"permission,omitempty" is:"full|edits|read-only"` // full, edits or read-only
	Resume     *bool  `json:"resume,omitempty"`                               // continue sessions; default true

	// For agents that run an external program; the limits are of one run of it.
	MaxTurns     int     `json:"maxTurns,omitempty"`               // 0: the adapter's default
	MaxCostUSD   float64 `json:"maxCostUsd,omitempty"`             // 0: any; only some programs can be told
	StartTimeout string  `json:"startTimeout,omitempty" is:"span"` // to its first word
	IdleTimeout  string  `json:"idleTimeout,omitempty" is:"span"`  // without a word
	// What to do when a try fails, and when the provider grants no more.
	Retry       *Retry   `json:"retry,omitempty"`
	OnRateLimit string   `json:"onRateLimit,omitempty" is:"stop|wait|fallback"` // stop, wait or fallback; default stop
	Fallback    []string `json:"fallback,omitempty"`                            // aliases, the first that can goes on
	// FallbackOn are the kinds of failures after which a fallback goes on; default rate-limit,
	// server and crash. For rate-limit onRateLimit must be fallback, too.
	FallbackOn []string `json:"fallbackOn,omitempty" is:"rate-limit|server|crash"`
	// Account is the name of the agent's account at its provider; agents with the same one share
	// its limits. Default: the name of the program, or of the model's provider.
	Account          string `json:"account,omitempty"`
	MaxRateLimitWait string `json:"maxRateLimitWait,omitempty" is:"span"` // that a thread waits at most, such as "8h"; default 24h

	Sandbox *SandboxConfig `json:"sandbox,omitempty"` // overrides the config's, key by key
}

// Retry says how often a step is tried that fails.
type Retry struct {
	Attempts int      `json:"attempts,omitempty"`                                // in all; default 3
	Backoff  string   `json:"backoff,omitempty" is:"span"`                       // before the second one, doubled each time; default 5s
	On       []string `json:"on,omitempty" is:"rate-limit|server|crash|timeout"` // kinds of failures; default rate-limit and server
}

// The values of onRateLimit in the config.
const (
	LimitStop     = "stop"
	LimitWait     = "wait"
	LimitFallback = "fallback"
)

// SandboxConfig sets what a sandbox lets programs do.
type SandboxConfig struct {
	// Mode is "auto", "landlock", "required" or "none". By default it is "auto", except for a program that
	// uwf does not know, and for one that brings a sandbox of its own.
	Mode         string   `json:"mode,omitempty" is:"auto|landlock|required|none"`
	DenyRead     []string `json:"denyRead,omitempty"`             // more that may be neither read nor written
	AllowRead    []string `json:"allowRead,omitempty"`            // what is hidden otherwise, such as ~/.ssh/config
	AllowWrite   []string `json:"allowWrite,omitempty"`           // more that may be written to; a path may begin with ~/
	SharedMemory *bool    `json:"sharedMemory,omitempty"`         // share memory with your other programs, and take what these share
	Caches       string   `json:"caches,omitempty" is:"own|user"` // of commands: "own" (the default), or "user" for yours
	Network      Network  `json:"network,omitempty"`              // what can be reached; default all
	Nest         *bool    `json:"nest,omitempty"`                 // make sandboxes of their own within; default true for agent programs, else false
}

// Over returns s with the values of base for the keys that s does not have. Both may be nil.
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

// Holds reports whether a program that cannot be held back at all does not start.
func (s SandboxConfig) Holds() bool { return s.Mode == SandboxLandlock || s.Mode == SandboxRequired }

// SharesMemory reports whether SharedMemory is true.
func (s SandboxConfig) SharesMemory() bool { return s.SharedMemory != nil && *s.SharedMemory }

// Nests reports whether programs may make sandboxes of their own within; unset is what counts without Nest.
func (s SandboxConfig) Nests(unset bool) bool {
	if s.Nest == nil {
		return unset
	}
	return *s.Nest
}

// The modes of a [SandboxConfig].
const (
	SandboxAuto     = "auto"     // as well as the system can
	SandboxLandlock = "landlock" // at least by Landlock, or the program does not start
	SandboxRequired = "required" // by namespaces, or it does not start
	SandboxNone     = "none"
)

// Network is what a sandboxed program can reach: {[NetworkAll]}, {[NetworkNone]}, or hosts of the
// forms host, host:port, *.host and host:*. A config has the words without a list. Nil is unset.
type Network []string

// The words of a [Network].
const (
	NetworkAll  = "all"
	NetworkNone = "none"
)

// All reports whether nothing is held back.
func (n Network) All() bool { return n == nil || slices.Equal(n, Network{NetworkAll}) }

// Hosts returns the hosts that can be reached, if not all.
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

// CommandsConfig sets the roles that are commands.
type CommandsConfig struct {
	Sandbox *SandboxConfig `json:"sandbox,omitempty"` // overrides the config's, key by key
	// PassEnv are variables that they get although these hold secrets: by "<workflow>.<role>", "<workflow>", or
	// "<hash>.<role>".
	PassEnv map[string][]string `json:"passEnv,omitempty"`
}

// BuiltinConfig sets uwf-builtin and uwf-react. The zero value is the default.
// The budgets are of one step; used up, they suspend the thread, and resuming it
// grants as much again.
type BuiltinConfig struct {
	AllowCommands []string `json:"allowCommands,omitempty"`              // programs that run_command may start; * is any
	Capabilities  []string `json:"capabilities,omitempty"`               // that root's commands keep, such as chown
	NoUnixSockets *bool    `json:"noUnixSockets,omitempty"`              // commands can make no unix sockets, nor talk to any; default: if the sandbox is required, and the kernel cannot keep them from those of others
	PassEnv       []string `json:"passEnv,omitempty"`                    // variables that commands get although they hold secrets
	Instructions  string   `json:"instructions,omitempty" is:"auto|off"` // "auto" (the default): AGENTS.md and CLAUDE.md are read; "off"
	AllowFetch    bool     `json:"allowFetch,omitempty"`                 // fetch_url may fetch public pages
	AllowPrivate  bool     `json:"allowPrivate,omitempty"`               // and pages of this machine and its network
	MaxTurns      int      `json:"maxTurns,omitempty"`                   // default 30
	MaxContinue   int      `json:"maxContinueTurns,omitempty"`           // to correct an answer; default 5
	MaxTokens     int      `json:"maxTokens,omitempty"`                  // read and written; 0: any number
	MaxCostUSD    float64  `json:"maxCostUsd,omitempty"`                 // 0: any
	MaxTime       string   `json:"maxTime,omitempty" is:"span"`          // such as "20m"; "": any
}

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
	// EnvArtifacts is a directory for files that the roles of a run leave each other. Neither a snapshot nor a
	// remote has it.
	EnvArtifacts = "UWF_ARTIFACTS_DIR"
	EnvVisitKey  = "UWF_VISIT_KEY" // the same for all tries of a visit, for effects elsewhere
	// how often the engine runs the agent again in this visit after a failure that may pass
	EnvRetries = "UWF_RETRIES"
	EnvBudget  = "UWF_BUDGET" // what the whole run may still cost, a [Budget] as JSON
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
