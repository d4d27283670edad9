package programs

import (
	"os"
	"path/filepath"
	"regexp"

	"github.com/united-workforce/uwf/util/careful"
	"github.com/united-workforce/uwf/util/lazyregexp"
)

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
	text, err := careful.ReadFile(path, 1<<20, careful.NoFollow)
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
		{name: dir + "/settings.json", harm: settings}, {name: dir + "/.env", around: true}, {name: dir + "/extensions"}, {name: dir + "/hooks"},
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
