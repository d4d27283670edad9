package protocol

import (
	"cmp"
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
	Notify         *NotifyConfig    `json:"notify,omitempty"`
}

// NotifyConfig says who is told that a thread has come to rest. Without it nobody is.
type NotifyConfig struct {
	On      []string       `json:"on,omitempty" is:"waiting|error|completed|limit"` // what is told: waiting, error, completed, limit; default: all
	Command []string       `json:"command,omitempty"`                               // a program with its arguments; it gets a [Notice] as JSON on stdin
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
	NoticeCompleted = "completed" // the thread is at its end
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
