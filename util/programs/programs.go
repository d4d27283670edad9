// Package programs describes other vendors' agent programs, in particular where each keeps its own data, such
// as settings, credentials and sessions. A sandboxed program needs write access to these places.
package programs

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Place is a directory or a file that belongs to a program.
type Place struct {
	variable   string // environment variable with its path, or the directory that contains it
	home       string // default for that, below the user's home directory
	name       string // below that
	disabledBy string // environment variable that makes the place unused

	// Obeys lists files and directories below, or "." for a file itself, that determine which programs it
	// runs, for any user.
	Obeys []string

	// Writes lists the files and, with a trailing slash, directories below that the program must be able to
	// write, while the rest is read-only; nil means all of it. A file with a leading plus is created empty if
	// missing. {project} in a name stands for the working directory in Claude Code's form.
	Writes []string

	// Made lists directories below that the program expects to exist and doesn't write.
	Made []string

	// Content is the initial content of a missing file; "" for a directory.
	Content string

	// Logins lists files below that the program renews and that its user needs afterwards as well.
	Logins []string
	// Sessions is a pattern of files below for resuming a session, with {session} for its id and {project} as
	// in Writes.
	Sessions string
}

// Path returns the path of a place, or "". env looks up a variable.
func (p Place) Path(env func(string) string) string {
	if p.disabledBy != "" && env(p.disabledBy) != "" {
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

// Places returns the places of a known program, also if the command starts it through another one such as
// npx. Their content is what the program would create on its first start.
func Places(command []string) (places []Place, known bool) {
	p := started(command, func(program) bool { return true })
	return p.places, p.names != nil
}

// NoTerminals reports whether a program is known to run its commands without a terminal.
func NoTerminals(command []string) bool {
	return started(command, func(p program) bool { return p.noTerminals }).noTerminals
}

// Sandboxes reports whether a program is known to run its commands in its own sandbox unless it has full
// access. That sandbox can't be nested in ours.
func Sandboxes(command []string) bool {
	return started(command, func(p program) bool { return p.sandboxes }).sandboxes
}

// Snapshots reports whether a program is known to keep git repositories in its own data. Anyone who later
// runs git there executes what they configure. Without write access to them it doesn't work unless snapshots
// are disabled: by "snapshot" in the settings in OPENCODE_CONFIG_CONTENT.
func Snapshots(command []string) bool {
	return started(command, func(p program) bool { return p.snapshots }).snapshots
}

// Obeyed reports whether a program executes a file or directory with this name (in lower case) in its working
// directory, when anyone starts it there later.
func Obeyed(name string) bool {
	return slices.ContainsFunc(known(), func(p program) bool { return slices.Contains(p.obeys, name) })
}

// started returns the first program started by a command that satisfies such, or the zero program.
func started(command []string, such func(program) bool) program {
	for i, word := range command {
		word = name(word)
		at := slices.IndexFunc(known(), func(p program) bool { return slices.Contains(p.names, word) && such(p) })
		if at >= 0 {
			return known()[at]
		}
		if i == 0 && !slices.Contains(starters, word) {
			break
		}
	}
	return program{}
}

// Guess returns places where an unknown program is likely to keep its data: under its name in the usual
// directories.
func Guess(command []string) []Place {
	if len(command) == 0 {
		return nil
	}
	word := name(command[0])
	if slices.Contains(starters, word) || slices.Contains(reserved, strings.TrimLeft(word, ".")) {
		return nil
	}
	return append(xdg(word), Place{home: "." + word})
}

// name returns a program's name from the word that starts it: a path, or an npm package with scope and
// version.
func name(word string) string {
	word = strings.TrimSuffix(filepath.Base(word), ".exe")
	if at := strings.LastIndexByte(word, '@'); at > 0 {
		word = word[:at]
	}
	return word
}

// xdg returns the places of a program that follows the XDG Base Directory Specification. Its cache is in the
// common cache directory.
func xdg(name string) []Place {
	return []Place{
		{variable: "XDG_CONFIG_HOME", home: ".config", name: name}, {variable: "XDG_DATA_HOME", home: ".local/share",
			name: name}, {variable: "XDG_STATE_HOME", home: ".local/state", name: name},
	}
}

// starters are programs that start another one unchanged and have no data that it needs.
var starters = []string{
	"bun", "bunx", "deno", "env", "nice", "node", "npm", "npx", "pnpm", "python", "python3", "stdbuf", "timeout", "uv",
	"uvx", "yarn",
}

// reserved lists names whose directories contain data of other programs.
var reserved = []string{"bash", "cache", "config", "docker", "git", "gnupg", "local", "podman", "sh", "ssh", "sudo",
	"uwf", "zsh"}

// program describes a known program. To add one, add an entry to [known].
type program struct {
	names  []string // on the command line, or of its package
	places []Place  // that are its own
	obeys  []string // names in a working directory that agents must not write
	plants []plant  // files in a clone that it would obey

	noTerminals  bool // it runs commands without a terminal
	sandboxes    bool // it has a sandbox of its own
	snapshots    bool // it keeps git repositories in its own data
	asksForTrust bool // it ignores a directory's settings unless the directory is trusted
	trust        trust
}

// trust is the setting that makes a program trust its directory.
type trust struct {
	name, value string // of an environment variable
	only        bool   // also applies in a sandbox
}

// known lists the programs. Claude Code and Codex can be configured to ignore the settings in a directory;
// their plants are for users who don't configure that.
var known = sync.OnceValue(func() []program {
	return []program{
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
			plants: around(".codex/config.toml", ".codex/hooks.json", ".codex/hooks"), // the bridge trusts every directory (2.6.0)
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
			trust: trust{name: "OPENCODE_DISABLE_PROJECT_CONFIG", value: "0", only: true},
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
			places: []Place{ // its data determines which servers it starts as well
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
})

// obeyed lists names in the data directory of a program with full write access to it, by which the program
// starts others or gets instructions when its user runs it later.
var obeyed = []string{
	"settings.json", "settings.local.json", "config.json", "config.yaml", "config.toml", "cli-config.json",
	"crush.json", "providers.json",
	"mcp.json", "mcp-config.json", "mcp-approvals.json", "permissions.json", "trustedFolders.json", "sandbox.json",
	"argv.json",
	"environment.json", ".env", "hooks.json", "hooks", "policies", "commands", "extensions", "plugins", "rules", "skills",
	"skills-cursor", "agents", "memories", "bin", "GEMINI.md", "QWEN.md", "AGENTS.md",
}

// claudes lists the places of Claude Code and its bridges.
var claudes = []Place{
	// Without shell-snapshots and session-env: the shells of other sessions run their content immediately.
	{variable: "CLAUDE_CONFIG_DIR", home: ".claude", Obeys: []string{".claude.json"},
		Logins: []string{".credentials.json"}, Sessions: "projects/{project}/{session}.jsonl", Writes: []string{
			"projects/{project}/", "todos/", "tasks/", "plans/", "file-history/", "debug/", "logs/", "statsig/", "telemetry/",
			"sessions/", "paste-cache/",
			"history.jsonl", "stats-cache.json", ".last-cleanup", ".credentials.json", ".claude.json",
		}},
	{home: ".claude.json", disabledBy: "CLAUDE_CONFIG_DIR", Content: "{}\n", Obeys: []string{"."}},
}

// plant is a file or directory in a clone that would make a program start others or send its credentials
// elsewhere without asking.
type plant struct {
	name   string
	harm   func() *regexp.Regexp // content that makes a file harmful; nil if its existence suffices
	around bool                  // also in parent directories, up to the root of the repository
}

// Planted returns a file that a program would obey in a directory, or in a parent in the same repository; ""
// if there is none.
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

// harms reports whether the path is a harmful plant. An unreadable file counts as harmful.
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
	// settings matches parts of the names of settings that start programs, and what can hide them.
	settings = lazyregexp.New(`(?i)command|mcp|hook|sandbox|extension|\\u|"env`)
	// variables matches settings that determine where credentials are sent or what runs: all of the vendor's
	// variables, except the keys and the project used for authentication.
	variables = lazyregexp.New(`(?mi)^[ \t]*(export[ \t]+)?(GEMINI_(CLI|SANDBOX|SYSTEM|FOLDER|TELEMETRY|DIR|HOME)\w*|GOOGLE_(GEMINI|VERTEX|GENAI|APPLICATION|CLOUD_ACCESS)\w*|CODE_ASSIST\w*|QWEN\w*|\w*_(BASE_?URL|ENDPOINT|PROXY|HOST)|\w*(SANDBOX|SEATBELT)\w*|NODE_\w*|LD_\w*|GIT_\w*|BASH_ENV|ENV|SHELL|EDITOR|VISUAL|PAGER|PATH|HOME)[ \t]*[=:]`)
)

// geminis returns the plants of Gemini CLI and its forks.
func geminis(dir string) []plant {
	return []plant{
		{name: dir + "/settings.json", harm: settings}, {name: dir + "/.env", around: true}, {name: dir + "/extensions"},
		{name: dir + "/hooks"},
		{name: ".env", harm: variables, around: true},
	}
}

// around returns plants that also apply in parent directories.
func around(names ...string) (plants []plant) {
	for _, name := range names {
		plants = append(plants, plant{name: name, around: true})
	}
	return plants
}

// Trust returns the environment variable that makes a program trust its directory, "" if there is none, and
// its value. alone means that it also applies in a sandbox.
func Trust(command []string) (variable, value string, alone bool) {
	t := started(command, func(p program) bool { return p.trust.name != "" }).trust
	return t.name, t.value, t.only
}

// AsksForTrust reports whether a program ignores the settings of an untrusted directory.
func AsksForTrust(command []string) bool {
	return started(command, func(p program) bool { return p.asksForTrust }).asksForTrust
}
