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
	// Sessions is a pattern of files below by which its user finds a session, {session} for its id, {project} as in Writes.
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

// Harmless are words of lines that a command prints when it is refused something that it does without.
func Harmless(command []string) []string {
	return started(command, func(p program) bool { return p.harmless != nil }).harmless
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
		{variable: "XDG_CONFIG_HOME", home: ".config", name: name}, {variable: "XDG_DATA_HOME", home: ".local/share", name: name}, {variable: "XDG_STATE_HOME", home: ".local/state", name: name},
	}
}

// starters start another program as it is, and have nothing of their own that it needs.
var starters = []string{
	"bun", "bunx", "deno", "env", "nice", "node", "npm", "npx", "pnpm", "python", "python3", "stdbuf", "timeout", "uv", "uvx", "yarn",
}

// taken are names whose directories hold what is other programs'.
var taken = []string{"bash", "cache", "config", "docker", "git", "gnupg", "local", "podman", "sh", "ssh", "sudo", "uwf", "zsh"}
