// Package programs knows agent programs of other people: where each keeps what is
// its own, such as settings, what it is logged in with, and sessions. A program that
// is kept from writing elsewhere needs these places.
package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Place is a directory or a file that is a program's own.
type Place struct {
	variable string // names it, or the directory that it is in
	home     string // otherwise that is this, below the user's home directory
	name     string // below that
	unless   string // a variable: if it is set the place is not used

	// Obeys are files and directories below, or "." for a file itself, that say which
	// programs it runs, whoever starts it.
	Obeys []string

	// Writes are the files and, with a slash at the end, directories below that the program
	// cannot work without writing, while it does not write the rest; nil: all of it. A file
	// with a plus before its name is made empty if it is missing. In a
	// name {project} stands for the working directory, as Claude Code calls it.
	Writes []string

	// Made are directories below that the program wants to be there, and does not write.
	Made []string

	// Content is what a file holds that is not there yet; "": it is a directory.
	Content string

	// Logins are files below that the program renews, and that its user needs then, too.
	Logins []string
	// Sessions is a pattern of files below by which its user finds a session, {session} for its id,
	// {project} as in Writes.
	Sessions string
}

// Path is where a place is; "" if nowhere. env looks up a variable.
func (p Place) Path(env func(string) string) string {
	if p.unless != "" && env(p.unless) != "" {
		return ""
	}
	base := ""
	if p.variable != "" {
		base = env(p.variable)
	}
	if base == "" {
		for _, home := range []string{env("HOME"), env("USERPROFILE")} {
			if home != "" {
				base = filepath.Join(home, filepath.FromSlash(p.home))
				break
			}
		}
	}
	if !filepath.IsAbs(base) {
		return ""
	}
	return filepath.Join(base, p.name)
}

// Places are those of a command that is known: of a program, also behind others
// that only start it, such as npx. They hold what the program would make itself at
// its first start.
func Places(command []string) (places []Place, known bool) {
	p := started(command, func(program) bool { return true })
	return p.places, p.names != nil
}

// NoTerminals reports whether a command is known to run what it runs without a terminal.
func NoTerminals(command []string) bool {
	return started(command, func(p program) bool { return p.noTerminals }).noTerminals
}

// Sandboxes reports whether a command is known to run what it runs in a sandbox of its own,
// unless it may do anything. It cannot be made inside of ours.
func Sandboxes(command []string) bool {
	return started(command, func(p program) bool { return p.sandboxes }).sandboxes
}

// Snapshots reports whether a command is known to keep git repositories among what is its
// own, in which whoever starts git there later obeys what they say. It does not work
// where it cannot write them, unless it is told to make none: by "snapshot" in the
// settings that OPENCODE_CONFIG_CONTENT holds.
func Snapshots(command []string) bool {
	return started(command, func(p program) bool { return p.snapshots }).snapshots
}

// Obeyed reports whether a program obeys a file or directory of this name (in lower case)
// in its working directory: whoever starts it there next runs what it names.
func Obeyed(name string) bool {
	return slices.ContainsFunc(known, func(p program) bool { return slices.Contains(p.obeys, name) })
}

// started is the first program of a table that a command starts and that is such a one;
// the zero program if there is none.
func started(command []string, such func(program) bool) program {
	for i, word := range command {
		word = name(word)
		at := slices.IndexFunc(known, func(p program) bool { return slices.Contains(p.names, word) && such(p) })
		if at >= 0 {
			return known[at]
		}
		if i == 0 && !slices.Contains(starters, word) {
			break
		}
	}
	return program{}
}

// Guess is where a command that is not known may keep what is its own: under its
// name in the usual places.
func Guess(command []string) []Place {
	if len(command) == 0 {
		return nil
	}
	word := name(command[0])
	if slices.Contains(starters, word) || slices.Contains(taken, strings.TrimLeft(word, ".")) {
		return nil
	}
	return append(xdg(word), Place{home: "." + word})
}

// name is a program's, by the word that starts it: a path, or a package of npm's
// with its scope and version.
func name(word string) string {
	word = strings.TrimSuffix(filepath.Base(word), ".exe")
	if at := strings.LastIndexByte(word, '@'); at > 0 {
		word = word[:at]
	}
	return word
}

// xdg are the places of a program that goes by the XDG Base Directory
// Specification. Its cache is in the directory of all caches.
func xdg(name string) []Place {
	return []Place{
		{variable: "XDG_CONFIG_HOME", home: ".config", name: name}, {variable: "XDG_DATA_HOME", home: ".local/share",
			name: name}, {variable: "XDG_STATE_HOME", home: ".local/state", name: name},
	}
}

// starters start another program as it is, and have nothing of their own that it needs.
var starters = []string{
	"bun", "bunx", "deno", "env", "nice", "node", "npm", "npx", "pnpm", "python", "python3", "stdbuf", "timeout", "uv",
	"uvx", "yarn",
}

// taken are names whose directories hold what is other programs'.
var taken = []string{"bash", "cache", "config", "docker", "git", "gnupg", "local", "podman", "sh", "ssh", "sudo",
	"uwf", "zsh"}

// program is what is known of one: a new one is one more entry of [known].
type program struct {
	names  []string // on the command line, and of its package
	places []Place  // that are its own
	obeys  []string // names in a working directory that no agent may write
	plants []plant  // what it would obey of a clone

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
		obeys: []string{".claude", ".mcp.json"},
		plants: []plant{{name: ".claude/settings.json"}, {name: ".claude/settings.local.json"}, {name: ".mcp.json",
			around: true}},
	},
	{names: []string{"claude-agent-acp", "claude-code-acp"}, places: claudes, noTerminals: true},
	{
		names: []string{"codex", "codex-acp"}, sandboxes: true,
		places: []Place{{variable: "CODEX_HOME", home: ".codex", Logins: []string{"auth.json"},
			Sessions: "sessions/*/*/*/rollout-*-{session}.jsonl", Writes: []string{
				"sessions/", "archived_sessions/", "thread-writer-locks/", "log/", "+installation_id", "history.jsonl",
				"session_index.jsonl", "auth.json", "version.json", "models_cache.json", "internal_storage.json",
			}}},
		obeys:  []string{".codex"},
		plants: around(".codex/config.toml", ".codex/hooks.json", ".codex/hooks"), // the bridge trusts each directory (2.6.0)
	},
	{
		names: []string{"gemini", "gemini-cli"}, asksForTrust: true, trust: trust{name: "GEMINI_CLI_TRUST_WORKSPACE",
			value: "true"},
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
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "cursor", Writes: []string{"auth.json"},
				Logins: []string{"auth.json"}},
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
		names: []string{"opencode", "opencode-ai"}, noTerminals: true, snapshots: true,
		trust: trust{name: "OPENCODE_DISABLE_PROJECT_CONFIG", value: "0", alone: true},
		places: []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "opencode", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "opencode", Writes: []string{"log/", "tool-output/",
				"storage/", "auth.json"}, Logins: []string{"auth.json"}, Made: []string{"repos"}},
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
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "amp", Writes: []string{"threads/", "history.jsonl",
				"session.json"}},
		},
		obeys: []string{".amp"}, plants: around(".amp"),
	},
}

// obeyed are names in the own directory of a program that it writes whole, by which it starts others, or is
// told what to do, when its user starts it next.
var obeyed = []string{
	"settings.json", "settings.local.json", "config.json", "config.yaml", "config.toml", "cli-config.json",
	"crush.json", "providers.json",
	"mcp.json", "mcp-config.json", "mcp-approvals.json", "permissions.json", "trustedFolders.json", "sandbox.json",
	"argv.json",
	"environment.json", ".env", "hooks.json", "hooks", "policies", "commands", "extensions", "plugins", "rules", "skills",
	"skills-cursor", "agents", "memories", "bin", "GEMINI.md", "QWEN.md", "AGENTS.md",
}

// claudes are the places of Claude Code, and of the bridges to it.
var claudes = []Place{
	// Not shell-snapshots and session-env: other sessions' shells run what lies there at once.
	{variable: "CLAUDE_CONFIG_DIR", home: ".claude", Obeys: []string{".claude.json"},
		Logins: []string{".credentials.json"}, Sessions: "projects/{project}/{session}.jsonl", Writes: []string{
			"projects/{project}/", "todos/", "tasks/", "plans/", "file-history/", "debug/", "logs/", "statsig/", "telemetry/",
			"sessions/", "paste-cache/",
			"history.jsonl", "stats-cache.json", ".last-cleanup", ".credentials.json", ".claude.json",
		}},
	{home: ".claude.json", unless: "CLAUDE_CONFIG_DIR", Content: "{}\n", Obeys: []string{"."}},
}

// plant is a file or directory of a clone by which a program would start others, or send
// what it is logged in with elsewhere, without asking anybody.
type plant struct {
	name   string
	harm   func() *regexp.Regexp // of a file: what it must hold for that; nil: that it is there is enough
	around bool                  // also in the directories around, as far as the repository goes
}

// Planted names what a command would obey of a directory, or of one around it in the same
// repository; "": nothing.
func Planted(command []string, dir string) string {
	plants := started(command, func(p program) bool { return p.plants != nil }).plants
	for at, top := dir, false; filepath.IsAbs(at) && !top; at = filepath.Dir(at) {
		for _, p := range plants {
			if path := filepath.Join(at, filepath.FromSlash(p.name)); (p.around || at == dir) && p.harms(path) {
				return path
			}
		}
		_, err := os.Lstat(filepath.Join(at, ".git"))
		top = err == nil || at == filepath.Dir(at)
	}
	return ""
}

// harms reports whether a path is what a plant says. What cannot be read is.
func (p plant) harms(path string) bool {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return false
	}
	if p.harm == nil {
		return true
	}
	text, err := safeopen.ReadFile(path, 1<<20, safeopen.NoFollow)
	return err != nil || p.harm().Match(text)
}

var (
	// settings are parts of the names of settings that start programs, and what can hide them.
	settings = lazyregexp.New(`(?i)command|mcp|hook|sandbox|extension|\\u|"env`)
	// variables say where a login goes, or what runs: all of the program's makers, but for
	// the keys and the project by which it logs in.
	variables = lazyregexp.New(`(?mi)^[ \t]*(export[ \t]+)?(GEMINI_(CLI|SANDBOX|SYSTEM|FOLDER|TELEMETRY|DIR|HOME)\w*|GOOGLE_(GEMINI|VERTEX|GENAI|APPLICATION|CLOUD_ACCESS)\w*|CODE_ASSIST\w*|QWEN\w*|\w*_(BASE_?URL|ENDPOINT|PROXY|HOST)|\w*(SANDBOX|SEATBELT)\w*|NODE_\w*|LD_\w*|GIT_\w*|BASH_ENV|ENV|SHELL|EDITOR|VISUAL|PAGER|PATH|HOME)[ \t]*[=:]`)
)

// geminis are those of Gemini CLI, and of what was made of it.
func geminis(dir string) []plant {
	return []plant{
		{name: dir + "/settings.json", harm: settings}, {name: dir + "/.env", around: true}, {name: dir + "/extensions"},
		{name: dir + "/hooks"},
		{name: ".env", harm: variables, around: true},
	}
}

// around are plants that count in the directories around, too.
func around(names ...string) (plants []plant) {
	for _, name := range names {
		plants = append(plants, plant{name: name, around: true})
	}
	return plants
}

// Trust says how a user lets a command obey its directory: a variable with a value, "" if
// there is none; alone tells that it counts also while the command is confined.
func Trust(command []string) (variable, value string, alone bool) {
	t := started(command, func(p program) bool { return p.trust.name != "" }).trust
	return t.name, t.value, t.alone
}

// AsksForTrust reports whether a command obeys nothing of a directory unless it is told to
// trust it.
func AsksForTrust(command []string) bool {
	return started(command, func(p program) bool { return p.asksForTrust }).asksForTrust
}
