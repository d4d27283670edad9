// Package programs knows agent programs of other people: where each keeps what is
// its own, such as settings, what it is logged in with, and sessions. A program that
// is kept from writing elsewhere needs these places.
package programs

import (
	"path/filepath"
	"slices"
	"strings"
)

// Place is a directory or a file that is a program's own.
type Place struct {
	variable string // names it, or the directory that it lies in
	home     string // else that is this, below the user's home directory
	name     string // below that
	above    string // a variable: without the first one it names the directory above home's last part
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

	// Apart are files and, with a slash at the end, directories below of which a confined
	// program has its own, for each working directory. It gets a directory in which they
	// lie beside links to the rest, in the place of the true one, and which goes when it
	// ends: what it makes there nobody obeys later. It needs the variable for that.
	Apart []string
	// Kept tells that who started the program looks into what it has apart.
	Kept bool
}

// Moved is how a program finds a place with Apart in another directory: the place there,
// and the variable that names the directory.
func (p Place) Moved(dir string) (path, variable string) {
	return filepath.Join(dir, p.name), p.variable + "=" + dir
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
	if above := env(p.above); p.above != "" && base == "" && above != "" {
		base = filepath.Join(above, filepath.Base(p.home))
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
	known = starts(command, func(program string) (ok bool) {
		places, ok = placesOf(program)
		return ok
	})
	return places, known
}

// NoTerminals tells whether a command is known to run what it runs without a terminal.
func NoTerminals(command []string) bool {
	return starts(command, func(program string) bool {
		return slices.Contains([]string{"claude", "claude-code", "claude-agent-acp", "claude-code-acp", "opencode", "opencode-ai"}, program)
	})
}

// Sandboxes tells whether a command is known to run what it runs in a sandbox of its own,
// unless it may do anything. It cannot be made inside of ours.
func Sandboxes(command []string) bool {
	return starts(command, func(program string) bool { return program == "codex" || program == "codex-acp" })
}

// Snapshots tells whether a command is known to keep git repositories among what is its
// own, in which whoever starts git there later obeys what they say. It does not work
// where it cannot write them, unless it is told to make none: by "snapshot" in the
// settings that OPENCODE_CONFIG_CONTENT holds.
func Snapshots(command []string) bool {
	return starts(command, func(program string) bool { return program == "opencode" || program == "opencode-ai" })
}

// starts tells whether a command starts such a program.
func starts(command []string, such func(program string) bool) bool {
	for i, word := range command {
		if such(name(word)) {
			return true
		}
		if i == 0 && !slices.Contains(starters, name(word)) {
			break
		}
	}
	return false
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

// placesOf are the places of a program, by its name on the command line or that of
// its package.
func placesOf(program string) ([]Place, bool) {
	switch program {
	case "claude", "claude-code", "claude-agent-acp", "claude-code-acp":
		return []Place{
			// Not shell-snapshots and session-env: other sessions' shells run what lies there at once.
			{variable: "CLAUDE_CONFIG_DIR", home: ".claude", Obeys: []string{".claude.json"}, Writes: []string{
				"projects/{project}/", "todos/", "tasks/", "plans/", "file-history/", "debug/", "logs/", "statsig/", "telemetry/", "sessions/", "paste-cache/",
				"history.jsonl", "stats-cache.json", ".last-cleanup", ".credentials.json", ".claude.json",
			}},
			{home: ".claude.json", unless: "CLAUDE_CONFIG_DIR", Content: "{}\n", Obeys: []string{"."}},
		}, true
	case "codex", "codex-acp":
		return []Place{{variable: "CODEX_HOME", home: ".codex", Writes: []string{
			"sessions/", "archived_sessions/", "thread-writer-locks/", "log/", "+installation_id", "history.jsonl", "session_index.jsonl", "auth.json", "version.json", "models_cache.json", "internal_storage.json",
		}}}, true
	case "gemini", "gemini-cli":
		return []Place{{variable: "GEMINI_CLI_HOME", name: ".gemini", Apart: []string{"tmp/", "history/"}, Made: []string{"commands"}, Writes: []string{
			"oauth_creds.json", "google_accounts.json", "gemini-credentials.json", "mcp-oauth-tokens.json", "mcp-oauth-tokens-v2.json",
		}}}, true
	case "qwen", "qwen-code":
		return []Place{{variable: "QWEN_HOME", home: ".qwen", Apart: []string{"tmp/", "projects/", "history/", "debug/"}, Writes: []string{"oauth_creds.json"}}}, true
	case "cursor-agent":
		return []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "cursor", Writes: []string{"auth.json"}},
			{home: ".cursor", Obeys: []string{
				"mcp.json", "mcp-approvals.json", "permissions.json", "hooks.json", "hooks", "cli-config.json", "sandbox.json", "argv.json", "environment.json",
				"commands", "extensions", "plugins", "rules", "skills", "skills-cursor", "agents", "bin",
			}},
		}, true
	case "hermes":
		return []Place{{variable: "HERMES_HOME", home: ".hermes", Apart: []string{"sessions/", "logs/", "state.db"}, Writes: []string{"auth.json"}, Kept: true}}, true
	case "copilot":
		return []Place{{variable: "COPILOT_HOME", home: ".copilot", Apart: []string{"session-state/", "history-session-state/", "command-history-state/", "logs/", "session-store.db"}, Writes: []string{}}}, true
	case "opencode", "opencode-ai":
		return []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "opencode", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "opencode", Writes: []string{"log/", "tool-output/", "storage/", "auth.json"}, Made: []string{"repos"}},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "opencode"},
		}, true
	case "crush": // its data say which servers it starts, too
		return []Place{
			{variable: "CRUSH_GLOBAL_CONFIG", above: "XDG_CONFIG_HOME", home: ".config/crush", Apart: []string{}, Writes: []string{}},
			{variable: "CRUSH_GLOBAL_DATA", above: "XDG_DATA_HOME", home: ".local/share/crush", Apart: []string{}, Writes: []string{}},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "crush", Writes: []string{"logs/"}},
		}, true
	case "goose":
		return []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "goose", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "goose", Writes: []string{"sessions/"}},
			{variable: "XDG_STATE_HOME", home: ".local/state", name: "goose", Writes: []string{"logs/", "history.txt"}},
		}, true
	case "amp":
		return []Place{
			{variable: "XDG_CONFIG_HOME", home: ".config", name: "amp", Writes: []string{}},
			{variable: "XDG_DATA_HOME", home: ".local/share", name: "amp", Writes: []string{"threads/", "history.jsonl", "session.json"}},
		}, true
	}
	return nil, false
}

// xdg are the places of a program that goes by the XDG Base Directory
// Specification. Its cache is in the directory of all caches.
func xdg(name string) []Place {
	return []Place{
		{variable: "XDG_CONFIG_HOME", home: ".config", name: name}, {variable: "XDG_DATA_HOME", home: ".local/share", name: name}, {variable: "XDG_STATE_HOME", home: ".local/state", name: name},
	}
}

// starters start another program as it is, and have nothing of their own that it needs.
var starters = []string{
	"bun", "bunx", "deno", "env", "nice", "node", "npm", "npx", "pnpm", "python", "python3", "stdbuf", "timeout", "uv", "uvx", "yarn",
}

// taken are names whose directories hold what is other programs'.
var taken = []string{"bash", "cache", "config", "docker", "git", "gnupg", "local", "podman", "sh", "ssh", "sudo", "uwf", "zsh"}
