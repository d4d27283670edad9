package external

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/durable"
)

// place is where a program keeps what is its own: settings, what it is logged in
// with, sessions.
type place struct {
	variable string // names it, or the directory that it lies in
	home     string // else that is this, below the user's home directory
	name     string // below that
	unless   string // a variable: if it is set the place is not used
	content  string // of a file that is not there yet; "": it is a directory
}

// The places of known programs.
var (
	claudePlaces = []place{{variable: "CLAUDE_CONFIG_DIR", home: ".claude"}, {home: ".claude.json", unless: "CLAUDE_CONFIG_DIR", content: "{}\n"}}
	codexPlaces  = []place{{variable: "CODEX_HOME", home: ".codex"}}
)

// placesOf are the places of a program, by its name on the command line.
func placesOf(program string) ([]place, bool) {
	switch program {
	case "claude", "claude-agent-acp", "claude-code-acp":
		return claudePlaces, true
	case "codex", "codex-acp":
		return codexPlaces, true
	case "gemini":
		return []place{{variable: "GEMINI_CLI_HOME", name: ".gemini"}}, true
	case "qwen":
		return []place{{home: ".qwen"}}, true
	case "cursor-agent":
		return append(xdg("cursor", false), place{home: ".cursor"}), true
	case "hermes":
		return []place{{variable: "HERMES_HOME", home: ".hermes"}}, true
	case "copilot":
		return []place{{home: ".copilot"}}, true
	case "opencode", "goose", "crush", "amp":
		return xdg(program, true), true
	}
	return nil, false
}

// xdg are the places of a program that goes by the XDG Base Directory
// Specification. Its cache is in the directory of all caches.
func xdg(name string, data bool) []place {
	places := []place{{variable: "XDG_CONFIG_HOME", home: ".config", name: name}}
	if data {
		places = append(places, place{variable: "XDG_DATA_HOME", home: ".local/share", name: name}, place{variable: "XDG_STATE_HOME", home: ".local/state", name: name})
	}
	return places
}

// launchers start other programs and have nothing of their own that an agent needs;
// the rest are names whose directories hold what is other programs'.
var launchers = []string{
	"bash", "bun", "bunx", "cache", "config", "deno", "docker", "env", "git", "gnupg", "local", "node", "npm", "npx", "pnpm", "podman", "python", "python3",
	"sh", "ssh", "sudo", "timeout", "uv", "uvx", "uwf", "yarn", "zsh",
}

// own finds the directories and files of a command, and makes those of a known
// program: it could not make them itself, since its home directory is closed. Of one
// that is not known it is what lies under its name in the usual places.
func own(command []string, env func(string) string) (dirs, files []string, err error) {
	var unknown []place
	var found []place
	for _, word := range command {
		name := strings.TrimSuffix(filepath.Base(word), ".exe")
		if places, ok := placesOf(name); ok {
			found = append(found, places...)
		}
	}
	if name := strings.TrimSuffix(filepath.Base(command[0]), ".exe"); len(found) == 0 && !slices.Contains(launchers, strings.TrimLeft(name, ".")) {
		unknown = append(xdg(name, true), place{home: "." + name})
	}
	for _, p := range found {
		path := p.path(env)
		if path == "" {
			continue
		}
		if err := p.make(path); err != nil {
			return nil, nil, err
		}
		if p.content == "" {
			dirs = append(dirs, path)
		} else {
			files = append(files, path)
		}
	}
	for _, p := range unknown {
		if path := p.path(env); path != "" {
			dirs = append(dirs, path)
		}
	}
	return dirs, files, nil
}

// path is where a place is; "" if nowhere.
func (p place) path(env func(string) string) string {
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

// make makes a place that is not there, as the program would at its first start.
func (p place) make(path string) error {
	if p.content == "" {
		return durable.OS().MkdirAll(path, 0o700)
	}
	if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return durable.WriteFile(durable.OS(), path, []byte(p.content), 0o600)
}
