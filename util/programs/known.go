package programs

// program is what is known of one: a new one is one more entry of [known].
type program struct {
	names  []string // on the command line, and of its package
	places []Place  // that are its own
	obeys  []string // names in a working directory that no agent may write
	plants []plant  // what it would obey of a clone
	// harmless are words in what it prints when it is refused something that it does without.
	harmless []string

	noTerminals  bool // it runs what it runs without a terminal
	sandboxes    bool // it has a sandbox of its own
	snapshots    bool // it keeps git repositories among what is its own
	asksForTrust bool // it obeys nothing of a directory that it was not told to trust
	trust        trust
}

// trust is how a user lets a program obey its directory.
type trust struct {
	name, value string // of an environment variable
	alone       bool   // it counts also while the program is confined
}

// known are the programs. Claude Code and Codex can be told to obey nothing of a directory;
// they have plants for whoever does not tell them.
var known = []program{
	{
		names: []string{"claude", "claude-code"}, places: claudes, noTerminals: true,
		obeys:  []string{".claude", ".mcp.json"},
		plants: []plant{{name: ".claude/settings.json"}, {name: ".claude/settings.local.json"}, {name: ".mcp.json", around: true}},
	},
	{names: []string{"claude-agent-acp", "claude-code-acp"}, places: claudes, noTerminals: true},
	{
		names: []string{"codex", "codex-acp"}, sandboxes: true,
		// Its tmp/ and its skills are also those of its other sessions.
		harmless: []string{
			"could not create PATH aliases", "failed to clean up stale arg0 temp dirs", "failed to install system skills",
		},
		places: []Place{{variable: "CODEX_HOME", home: ".codex", Logins: []string{"auth.json"}, Sessions: "sessions/*/*/*/rollout-*-{session}.jsonl", Writes: []string{
			"sessions/", "archived_sessions/", "thread-writer-locks/", "log/", "+installation_id", "history.jsonl", "session_index.jsonl", "auth.json", "version.json", "models_cache.json", "internal_storage.json",
		}}},
		obeys:  []string{".codex"},
		plants: around(".codex/config.toml", ".codex/hooks.json", ".codex/hooks"), // the bridge trusts each directory (2.6.0)
	},
	{
		names: []string{"gemini", "gemini-cli"}, asksForTrust: true, trust: trust{name: "GEMINI_CLI_TRUST_WORKSPACE", value: "true"},
		places: []Place{{variable: "GEMINI_CLI_HOME", name: ".gemini", Obeys: obeyed,
			Logins: []string{"oauth_creds.json", "gemini-credentials.json", "mcp-oauth-tokens.json"}}},
		obeys: []string{".gemini"}, plants: geminis(".gemini"),
	},
	{
		names:  []string{"qwen", "qwen-code"},
		places: []Place{{variable: "QWEN_HOME", home: ".qwen", Obeys: obeyed, Logins: []string{"oauth_creds.json"}}},
		obeys:  []string{".qwen"}, plants: geminis(".qwen"),
	},
	{
		names: []string{"cursor-agent"}, asksForTrust: true,
		places: []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "cursor", Writes: []string{"auth.json"}, Logins: []string{"auth.json"}},
			{home: ".cursor", Obeys: obeyed},
		},
		obeys: []string{".cursor"}, plants: around(".cursor/hooks.json", ".cursor/mcp.json", ".cursor/plugins"),
	},
	{
		names:  []string{"hermes"},
		places: []Place{{variable: "HERMES_HOME", home: ".hermes", Obeys: obeyed, Logins: []string{"auth.json"}}},
		obeys:  []string{".hermes"},
	},
	{
		names:  []string{"copilot"},
		places: []Place{{variable: "COPILOT_HOME", home: ".copilot", Obeys: obeyed}},
		obeys:  []string{".copilot"},
		plants: around(".github/hooks", ".github/copilot", ".github/mcp.json", ".copilot", ".mcp.json", ".vscode/mcp.json"),
	},
	{
		names: []string{"opencode", "opencode-ai"}, noTerminals: true, snapshots: true, trust: trust{name: "OPENCODE_DISABLE_PROJECT_CONFIG", value: "0", alone: true},
		places: []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "opencode", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "opencode", Writes: []string{"log/", "tool-output/", "storage/", "auth.json"}, Logins: []string{"auth.json"}, Made: []string{"repos"}},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "opencode"},
		},
		obeys:  []string{".opencode", "opencode.json", "opencode.jsonc"},
		plants: around(".opencode/plugin", ".opencode/plugins", ".opencode/tool", ".opencode/tools"),
	},
	{
		names: []string{"crush"},
		places: []Place{ // its data say which servers it starts, too
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "crush", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "crush", Obeys: obeyed},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "crush", Writes: []string{"logs/"}},
		},
		obeys: []string{"crush.json", ".crush.json"}, plants: around("crush.json", ".crush.json"),
	},
	{
		names: []string{"goose"},
		places: []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "goose", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "goose", Writes: []string{"sessions/"}},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "goose", Writes: []string{"logs/", "history.txt"}},
		},
	},
	{
		names: []string{"amp"},
		places: []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "amp", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "amp", Writes: []string{"threads/", "history.jsonl", "session.json"}},
		},
		obeys: []string{".amp"}, plants: around(".amp"),
	},
}

// obeyed are names in the own directory of a program that it writes whole, by which it starts others, or is
// told what to do, when its user starts it next.
var obeyed = []string{
	"settings.json", "settings.local.json", "config.json", "config.yaml", "config.toml", "cli-config.json", "crush.json", "providers.json",
	"mcp.json", "mcp-config.json", "mcp-approvals.json", "permissions.json", "trustedFolders.json", "sandbox.json", "argv.json",
	"environment.json", ".env", "hooks.json", "hooks", "policies", "commands", "extensions", "plugins", "rules", "skills",
	"skills-cursor", "agents", "memories", "bin", "GEMINI.md", "QWEN.md", "AGENTS.md",
}

// claudes are the places of Claude Code, and of the bridges to it.
var claudes = []Place{
	// Not shell-snapshots and session-env: other sessions' shells run what lies there at once.
	{variable: "CLAUDE_CONFIG_DIR", home: ".claude", Obeys: []string{".claude.json"}, Logins: []string{".credentials.json"}, Sessions: "projects/{project}/{session}.jsonl", Writes: []string{
		"projects/{project}/", "todos/", "tasks/", "plans/", "file-history/", "debug/", "logs/", "statsig/", "telemetry/", "sessions/", "paste-cache/",
		"history.jsonl", "stats-cache.json", ".last-cleanup", ".credentials.json", ".claude.json",
	}},
	{home: ".claude.json", unless: "CLAUDE_CONFIG_DIR", Content: "{}\n", Obeys: []string{"."}},
}
