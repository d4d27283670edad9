// Package offlimits determines which paths a model must not touch, for file tools and commands alike.
//
//   - Hidden paths can be neither read nor written: uwf's home with its keys, locks
//     and sessions, and hidden entries of the user's home, except for a list of
//     names that programs need (places.go).
//   - If the workspace contains the user's home, the names in that list and the
//     directories in PATH are read-only.
//   - Names in a workspace that belong to the user's code: .git, .workflow* and
//     .uwf. The file tools do not write there, do not create a directory that git
//     would accept as a repository, and do not write files that git settings refer
//     to (pointed.go). For commands, package box protects them.
//
// Paths that the user explicitly allows in the config take precedence.
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

// List holds the protected paths for one workspace. The zero value protects only names, not paths.
type List struct {
	hidden   []string // absolute and free of symbolic links, like all paths here
	readable []string
	writable []string
	denied   []string // hidden by the user
	guards   []string // read-only
	user     string   // the home directory if the workspace contains it: file tools write nothing hidden in it
	home     string   // the user's home with git's settings, or ""
}

// Hidden returns the paths that cannot be read, in the form for confine.Rules.
func (l List) Hidden() []string { return l.hidden }

// Inside returns the hidden paths inside dir, relative to it and slash-separated.
func (l List) Inside(dir string) (inside []string) {
	for _, path := range l.hidden {
		if rel, err := filepath.Rel(dir, path); err == nil && within(dir, path) && rel != "." {
			inside = append(inside, filepath.ToSlash(rel))
		}
	}
	return inside
}

// Narrows describes which hidden paths in a directory a program confined to it cannot use, or returns "".
func (l List) Narrows(dir string) string {
	inside := l.Inside(dir)
	if len(inside) == 0 {
		return ""
	}
	return fmt.Sprintf("%s contains %s, which is off limits: sandboxed programs cannot create files in its "+
		"directory or above", dir, plaintext.Names(inside, 5))
}

// Closed returns the unreadable paths, split so that none contains a readable one, for sandboxes that can
// only deny. A directory with too many entries isn't split, so nothing readable stays in it.
func (l List) Closed() (closed []string) {
	var add func(path string)
	left, open := maxClosed, append(slices.Clone(l.readable), l.writable...)
	add = func(path string) {
		var entries []os.DirEntry
		if slices.ContainsFunc(open, func(o string) bool { return within(path, o) }) {
			entries, _ = os.ReadDir(path)
		}
		size := len(entries) * (len(path) + 40) // a thread's directory has 26 bytes
		if size == 0 || size > left {
			closed = append(closed, path)
			return
		}
		left -= size
		for _, entry := range entries {
			if below := filepath.Join(path, entry.Name()); !covered(open, below) {
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

// maxClosed bounds the size of the paths that are split in bytes, since all become one argument of at most 128 KiB.
const maxClosed = 90 << 10

// Denied returns the hidden paths that are not hidden by default.
func (l List) Denied() []string { return l.denied }

// Readable returns the exceptions from Hidden.
func (l List) Readable() []string { return l.readable }

// Guarded returns the read-only paths.
func (l List) Guarded() []string { return l.guards }

// Writable returns the paths excepted from all protection.
func (l List) Writable() []string { return l.writable }

// Read returns an error if a path below a workspace must not be read. Both are absolute and free of symbolic
// links. If the workspace is itself inside a hidden path, that was the user's choice.
func (l List) Read(workspace, path string) error {
	for _, h := range l.hidden {
		if within(h, path) && !within(h, workspace) && !covered(l.readable, path) && !covered(l.writable, path) {
			return fmt.Errorf("%s is off limits: it has keys and settings of programs. Continue without it (a "+
				"person can allow it: sandbox.allowRead in config.yaml)", h)
		}
	}
	return nil
}

// Write returns an error if a path below a workspace must not be written.
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
	return fmt.Errorf("%s is off limits: %s. Leave it as it is, and describe the change in your answer", name, why)
}

// lifted reports whether the user allowed a path by a name that is guarded or inside a guarded path.
func (l List) lifted(guarded, path string) bool {
	return slices.ContainsFunc(l.writable, func(w string) bool { return within(guarded, w) && within(w, path) })
}

func within(dir, path string) bool {
	return path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, string(filepath.Separator))+string(filepath.Separator))
}

func covered(dirs []string, path string) bool {
	return slices.ContainsFunc(dirs, func(d string) bool { return within(d, path) })
}

// reserved returns the reason why a name in a workspace must not be written, or "".
func reserved(name string) string {
	name = plain(name)
	switch {
	case isGit(name):
		return "git runs programs from these files; change them with git's commands"
	case strings.HasPrefix(name, ".workflow"):
		return "workflows control what runs next, and where"
	case name == ".uwf":
		return "it may be the home of uwf"
	case isAgents(name):
		return "agent programs follow it when they start here"
	}
	return ""
}

// isAgents reports whether a normalized name is one that agents obey in a directory.
func isAgents(name string) bool {
	return programs.Obeyed(name) || name == ".agents" || name == ".aider.conf.yml"
}

// isObeyed reports whether a path ends in a file that agents, editor agents, or version control systems obey
// and whose directory has other contents as well. Hidden directories that configure servers follow a rule;
// the rest is a list, because most hidden files of a project are ordinary work.
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

// isOthers reports whether a normalized name is that of a repository of a system other than git. Its own
// commands write there.
func isOthers(name string) bool {
	return slices.Contains([]string{".hg", ".jj", ".sl", ".pijul", ".bzr", "_darcs"}, name)
}

// reservedPath returns the reason why file tools must not write a path or anything below it, or "".
func reservedPath(parts []string) string {
	why := reserved(parts[len(parts)-1])
	switch {
	case why != "":
	case isOthers(plain(parts[len(parts)-1])):
		why = "programs run commands from these files; change them with its own commands"
	case isObeyed(strings.Join(parts, "/")):
		why = reserved(".claude")
	}
	return why
}

// isGit reports whether a normalized name is git's directory, including its short name on Windows.
func isGit(name string) bool { return name == ".git" || name == "git~1" }

// plain normalizes a name as a file system may treat it: it ignores case, invisible characters (Apple), and
// on Windows trailing dots and spaces and the name of a stream.
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

// Obeyed reports whether agents, uwf or version control systems other than git obey a slash-separated path in
// a workspace.
func Obeyed(name string) bool {
	p := plain(path.Base(name))
	return !isGit(p) && reserved(p) != "" || isObeyed(name)
}

// IsGit reports whether a name is git's directory.
func IsGit(name string) bool { return isGit(plain(name)) }

// Plain normalizes a name as a file system may treat it, ignoring case and invisible characters.
func Plain(name string) string { return plain(name) }
