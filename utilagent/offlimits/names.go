package offlimits

import (
	"strings"
	"unicode"
)

// reserved says why a name within a workspace must not be written; "": it may.
func reserved(name string) string {
	name = plain(name)
	switch {
	case isGit(name):
		return "git runs what its own files say; git's commands change them"
	case strings.HasPrefix(name, ".workflow"):
		return "workflows say what runs next, and where"
	case name == ".uwf":
		return "it may be the home of uwf"
	case isAgents(name):
		return "agent programs obey it: whoever starts one here next runs what it names"
	}
	return ""
}

// isAgents tells whether a plain name is that of what agent programs obey in a directory.
func isAgents(name string) bool {
	switch name {
	case ".claude", ".mcp.json", ".gemini", ".qwen", ".opencode", "opencode.json", "opencode.jsonc", ".codex", ".cursor":
		return true
	}
	return false
}

// isGit tells whether a plain name is git's directory, also by the short name
// that Windows gives it.
func isGit(name string) bool { return name == ".git" || name == "git~1" }

// plain is a name as a file system may see it that ignores case, invisible
// characters (Apple's), and what follows a name on Windows: dots, spaces, a
// stream.
func plain(name string) string {
	name, _, _ = strings.Cut(name, ":")
	name = strings.Map(func(r rune) rune {
		if unicode.Is(unicode.Cf, r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	return strings.TrimRight(name, ". ")
}
