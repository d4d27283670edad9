package offlimits

import (
	"path"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/util/programs"
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

// isAgents reports whether a plain name is that of what agent programs obey in a directory.
func isAgents(name string) bool {
	return programs.Obeyed(name) || name == ".agents" || name == ".aider.conf.yml"
}

// isObeyed reports whether a path ends with what agent programs, editors' agents, or
// systems like git obey, of a directory in which other things lie as well. Where hidden
// directories name servers is a rule; the rest is a list: most hidden files of a project
// are ordinary work.
func isObeyed(name string) bool {
	switch plain(path.Base(name)) {
	case "mcp.json", "mcp_config.json", "mcp-config.json", "mcp_settings.json", "hooks.json":
		return strings.HasPrefix(plain(path.Base(path.Dir(name))), ".") && path.Dir(name) != "."
	case "crush.json", "hooks", "copilot", "settings", "settings.json", "agents", "mcpservers", "config.yaml", "mcp", "cli-agents", "config.toml", "hgrc", "config":
	default:
		return false
	}
	parts := strings.Split(name, "/")
	for i, part := range parts {
		parts[i] = plain(part)
	}
	end := "/" + strings.Join(parts[max(len(parts)-3, 0):], "/")
	return slices.ContainsFunc([]string{
		".crush/crush.json", ".github/hooks", ".github/copilot", ".zed/settings.json",
		".kiro/settings", ".kiro/hooks", ".kiro/agents", ".factory/settings.json", ".factory/hooks", ".goose/config.yaml",
		".augment/settings.json", ".iflow/settings.json", ".codebuddy/settings.json", ".grok/settings.json", ".pi/settings.json", ".kimi/config.toml", ".continue/mcpservers", ".continue/config.yaml", ".amazonq/cli-agents", ".junie/mcp", ".clinerules/hooks",
		".hg/hgrc", ".jj/repo/config.toml", ".sl/config", ".pijul/config",
	}, func(obeyed string) bool { return strings.HasSuffix(end, "/"+obeyed) })
}

// isOthers reports whether a plain name is that of a repository of a system other than
// git. Its commands write there.
func isOthers(name string) bool {
	return slices.Contains([]string{".hg", ".jj", ".sl", ".pijul", ".bzr", "_darcs"}, name)
}

// reservedPath says why the file tools write neither a path nor what lies below it.
func reservedPath(parts []string) string {
	why := reserved(parts[len(parts)-1])
	switch {
	case why != "":
	case isOthers(plain(parts[len(parts)-1])):
		why = "programs run what its own files say; the commands of its system change them"
	case isObeyed(strings.Join(parts, "/")):
		why = reserved(".claude")
	}
	return why
}

// isGit reports whether a plain name is git's directory, also by the short name
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

// Obeyed reports whether agents, uwf or version control other than git obey what is at a
// slash-separated path of a workspace.
func Obeyed(name string) bool {
	p := plain(path.Base(name))
	return !isGit(p) && reserved(p) != "" || isObeyed(name)
}

// IsGit reports whether a name is that of git's directory.
func IsGit(name string) bool { return isGit(plain(name)) }

// Plain is a name as a file system may see it that ignores case and invisible characters.
func Plain(name string) string { return plain(name) }
