package programs

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/united-workforce/uwf/util/careful"
)

// plant is a file or directory of a clone by which a program would start others, or send
// what it is logged in with elsewhere, without asking anybody.
type plant struct {
	name   string
	harm   *regexp.Regexp // of a file: what it must hold for that; nil: that it is there is enough
	around bool           // also in the directories around, as far as the repository goes
}

// Planted names what a command would obey of a directory, or of one around it in the same
// repository; "": nothing.
func Planted(command []string, dir string) string {
	var plants []plant
	starts(command, func(program string) bool {
		plants = plantsOf(program)
		return plants != nil
	})
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

// harms tells whether a path is what a plant says. What cannot be read is.
func (p plant) harms(path string) bool {
	if _, err := os.Lstat(path); os.IsNotExist(err) {
		return false
	}
	if p.harm == nil {
		return true
	}
	text, err := careful.ReadFile(path, 1<<20, careful.NoFollow)
	return err != nil || p.harm.Match(text)
}

var (
	// settings are parts of the names of settings that start programs, and what can hide them.
	settings = regexp.MustCompile(`(?i)command|mcp|hook|sandbox|extension|\\u|"env`)
	// variables say where a login goes, or what runs: all of the program's makers, but for
	// the keys and the project by which it logs in.
	variables = regexp.MustCompile(`(?mi)^[ \t]*(export[ \t]+)?(GEMINI_(CLI|SANDBOX|SYSTEM|FOLDER|TELEMETRY|DIR|HOME)\w*|GOOGLE_(GEMINI|VERTEX|GENAI|APPLICATION|CLOUD_ACCESS)\w*|CODE_ASSIST\w*|QWEN\w*|\w*_(BASE_?URL|ENDPOINT|PROXY|HOST)|\w*(SANDBOX|SEATBELT)\w*|NODE_\w*|LD_\w*|GIT_\w*|BASH_ENV|ENV|SHELL|EDITOR|VISUAL|PAGER|PATH|HOME)[ \t]*[=:]`)
)

// plantsOf are those of a program. Claude Code and Codex can be told to obey nothing of a
// directory; they are here for who does not tell them.
func plantsOf(program string) []plant {
	switch program {
	case "claude", "claude-code":
		return []plant{{name: ".claude/settings.json"}, {name: ".claude/settings.local.json"}, {name: ".mcp.json", around: true}}
	case "codex", "codex-acp": // the bridge trusts each directory (2.6.0)
		return []plant{{name: ".codex/config.toml", around: true}, {name: ".codex/hooks.json", around: true}, {name: ".codex/hooks", around: true}}
	case "gemini", "gemini-cli":
		return geminis(".gemini")
	case "qwen", "qwen-code":
		return geminis(".qwen")
	case "opencode", "opencode-ai":
		var plants []plant
		for _, name := range []string{"plugin", "plugins", "tool", "tools"} {
			plants = append(plants, plant{name: ".opencode/" + name, around: true})
		}
		return plants
	case "cursor-agent":
		return []plant{{name: ".cursor/hooks.json", around: true}, {name: ".cursor/mcp.json", around: true}, {name: ".cursor/plugins", around: true}}
	case "copilot":
		return []plant{
			{name: ".github/hooks", around: true}, {name: ".github/copilot", around: true}, {name: ".github/mcp.json", around: true}, {name: ".copilot", around: true},
			{name: ".mcp.json", around: true}, {name: ".vscode/mcp.json", around: true},
		}
	case "crush":
		return []plant{{name: "crush.json", around: true}, {name: ".crush.json", around: true}}
	case "amp":
		return []plant{{name: ".amp", around: true}}
	}
	return nil
}

// geminis are those of Gemini CLI, and of what was made of it.
func geminis(dir string) []plant {
	return []plant{
		{name: dir + "/settings.json", harm: settings}, {name: dir + "/.env", around: true}, {name: dir + "/extensions"}, {name: dir + "/hooks"},
		{name: ".env", harm: variables, around: true},
	}
}

// Trust says how a user lets a command obey its directory: a variable with a value, "" if
// there is none; alone tells that it counts also while the command is confined.
func Trust(command []string) (variable, value string, alone bool) {
	starts(command, func(program string) bool {
		switch program {
		case "gemini", "gemini-cli":
			variable, value = "GEMINI_CLI_TRUST_WORKSPACE", "true"
		case "opencode", "opencode-ai":
			variable, value, alone = "OPENCODE_DISABLE_PROJECT_CONFIG", "0", true
		}
		return variable != ""
	})
	return variable, value, alone
}

// AsksForTrust tells whether a command obeys nothing of a directory unless it is told to
// trust it.
func AsksForTrust(command []string) bool {
	return starts(command, func(program string) bool {
		return program == "gemini" || program == "gemini-cli" || program == "cursor-agent"
	})
}
