// Package offlimits owns the list of what a model must not touch, for the tools
// that work on files and for commands alike.
//
//   - Hidden places can be neither read nor written: the home of uwf, with its keys,
//     locks and sessions, and what is hidden in the user's home, except for a list
//     of names that programs need (places.go).
//   - Where the workspace holds the home, names of that list, and what is in the
//     PATH there, can be read and not be written.
//   - Names that stand for code of the user's, in a workspace: .git, .workflow*
//     and .uwf. The file tools do not write there, nor do they make a
//     directory that git takes for a repository, nor write what git's
//     settings point at (pointed.go). For commands package box has them.
//
// What the user allows by name in the config wins.
package offlimits

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/programs"
)

// List is what is off limits in one workspace. The zero value knows the names
// only, and no places.
type List struct {
	hidden   []string // absolute and without links, as all paths here
	readable []string
	writable []string
	guards   []string // what may be read and not be written
	user     string   // the home directory, if the workspace holds it: file tools write nothing hidden in it
	home     string   // the user's own directory, with git's settings; "": there is none
}

// Hidden are the places that cannot be read, such as confine.Rules wants them.
func (l List) Hidden() []string { return l.hidden }

// Inside are the hidden places in a directory without links, by their paths from it, with slashes.
func (l List) Inside(dir string) (inside []string) {
	for _, path := range l.hidden {
		if rel, err := filepath.Rel(dir, path); err == nil && within(dir, path) && rel != "." {
			inside = append(inside, filepath.ToSlash(rel))
		}
	}
	return inside
}

// Narrows says what hidden places in a directory keep from who is confined to it; "": there are none.
func (l List) Narrows(dir string) string {
	inside := l.Inside(dir)
	if len(inside) == 0 {
		return ""
	}
	return fmt.Sprintf("%s holds %s, which is off limits: what is confined cannot make new files directly beside it "+
		"or above", dir, plaintext.Names(inside, 5))
}

// Closed are the places that cannot be read, with none that lie in them and can: for who
// can only forbid.
func (l List) Closed() (closed []string) {
	var add func(path string)
	add = func(path string) {
		open := append(slices.Clone(l.readable), l.writable...)
		if !slices.ContainsFunc(open, func(o string) bool { return within(path, o) }) {
			closed = append(closed, path)
			return
		}
		entries, _ := os.ReadDir(path) // what cannot be listed is closed anyway
		for _, entry := range entries {
			if below := filepath.Join(path, entry.Name()); !covered(open, below) && len(closed) < maxClosed {
				add(below)
			}
		}
	}
	for _, path := range l.hidden {
		if !covered(l.writable, path) {
			add(path)
		}
	}
	return closed
}

// maxClosed bounds how many places are named, each on a command line.
const maxClosed = 2000

// Readable are exceptions from Hidden.
func (l List) Readable() []string { return l.readable }

// Guarded are the places that can be read and not be written.
func (l List) Guarded() []string { return l.guards }

// Writable are exceptions from all that is off limits.
func (l List) Writable() []string { return l.writable }

// Read returns an error for a path below a workspace that must not be read. Both
// are absolute and without links. A hidden place that the workspace is in was
// chosen on purpose.
func (l List) Read(workspace, path string) error {
	for _, h := range l.hidden {
		if within(h, path) && !within(h, workspace) && !covered(l.readable, path) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: programs keep their keys and settings there. Go on without it (a person can allow it: sandbox.allowRead in config.yaml)", h)
		}
	}
	return nil
}

// Write returns an error for a path below a workspace that must not be written.
func (l List) Write(workspace, path string) error {
	if err := l.Read(workspace, path); err != nil {
		return err
	}
	if err := cmp.Or(l.dotted(path), l.guarded(path)); err != nil {
		return err
	}
	rel, err := filepath.Rel(workspace, path)
	if err != nil {
		return err
	}
	parts := strings.Split(filepath.ToSlash(rel), "/")
	for i := range parts {
		why := reservedPath(parts[:i+1])
		if why == "" {
			continue
		}
		at := filepath.Join(workspace, filepath.Join(parts[:i+1]...))
		if l.lifted(at, path) {
			return nil
		}
		return refused(rel, why)
	}
	if rel == "." {
		return nil
	}
	if err := l.gitDirectory(workspace, rel, parts); err != nil {
		return err
	}
	return l.pointedAt(workspace, rel)
}

func refused(name, why string) error {
	return fmt.Errorf("%s is off limits: %s. Leave it as it is, and say in your answer what should be changed", name, why)
}

// lifted reports whether the user has allowed a path by a name that is a guarded
// one or is in it.
func (l List) lifted(guarded, path string) bool {
	return slices.ContainsFunc(l.writable, func(w string) bool { return within(guarded, w) && within(w, path) })
}

// within reports whether a path is a directory or lies below it.
func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func covered(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(d, path) })
}

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
