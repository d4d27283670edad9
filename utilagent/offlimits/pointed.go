package offlimits

import (
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/gitdir"
	"github.com/united-workforce/uwf/util/lazyregexp"
	"github.com/united-workforce/uwf/util/safeopen"
)

// Bounds for following git's settings from file to file.
const (
	maxIncludeDepth = 10
	maxPointers     = 200
	maxFileBytes    = 1 << 20
)

// pointer is a path outside git's own directories from which git takes settings or programs, because an
// existing setting refers to it.
type pointer struct {
	path  string // absolute; may not exist
	hooks bool   // a directory with programs, otherwise a config
}

// pointers collects the references in git's settings.
type pointers struct {
	home  string
	files map[string][]setting // that were read, for other repositories as well
	found []pointer
}

// pointersOf returns the references in the settings of the repository at top and in the user's settings.
func pointersOf(home, top string, files map[string][]setting) []pointer {
	p := &pointers{home: home, files: files}
	if git, common, ok := gitdir.Dirs(top); ok {
		p.read(filepath.Join(common, "config"), top, 0)
		p.read(filepath.Join(git, "config.worktree"), top, 0)
	}
	if home != "" {
		for _, file := range []string{filepath.Join(home, ".gitconfig"), filepath.Join(home, ".config", "git", "config")} {
			p.add(pointer{path: file}) // often a link into a workspace with such files
			p.read(file, top, 0)
		}
	}
	return p.found
}

func (p *pointers) read(file, top string, depth int) {
	if depth > maxIncludeDepth {
		return
	}
	settings, known := p.files[file]
	if !known {
		text, _ := safeopen.ReadFile(file, maxFileBytes, safeopen.Follow) // it may be missing
		settings = readSettings(text)
		p.files[file] = settings
	}
	for _, s := range settings {
		switch {
		case s.key == "path" && (s.section == "include" || s.section == "includeif"):
			if at := p.resolve(s.value, filepath.Dir(file)); p.add(pointer{path: at}) {
				p.read(at, top, depth+1)
			}
		case s.key == "hookspath" && s.section == "core":
			at := p.resolve(s.value, top)
			if filepath.Base(at) == "_" { // husky: its programs start those in the parent directory
				at = filepath.Dir(at)
			}
			p.add(pointer{path: at, hooks: true})
		}
	}
}

// add adds a pointer and the target of a link in it, and reports whether it is new.
func (p *pointers) add(to pointer) bool {
	if to.path == "" || len(p.found) >= maxPointers || slices.Contains(p.found, to) {
		return false
	}
	p.found = append(p.found, to)
	if real := followed(to.path); real != to.path {
		p.add(pointer{path: real, hooks: to.hooks})
	}
	return true
}

func (p *pointers) resolve(value, dir string) string {
	if rest, ok := strings.CutPrefix(value, "~/"); ok {
		value = filepath.Join(p.home, rest)
	}
	switch {
	case value == "" || value[0] == '~' || value[0] == '%': // another user's
		return ""
	case filepath.IsAbs(value):
		return filepath.Clean(value)
	}
	return filepath.Join(dir, filepath.FromSlash(value))
}

// followed resolves the links in a path as far as it exists.
func followed(path string) string {
	existing, rest := path, ""
	for {
		if real, err := filepath.EvalSymlinks(existing); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(existing)
		if up == existing {
			return path
		}
		existing, rest = up, filepath.Join(filepath.Base(existing), rest)
	}
}

// guards reports whether writing a path of a workspace changes the pointer's target. Hooks in a directory
// that contains the whole workspace are recognized only by name.
func (p pointer) guards(workspace, path string) bool {
	at, name := strings.ToLower(p.path), strings.ToLower(path)
	if p.hooks && within(p.path, workspace) {
		return filepath.Dir(name) == at && isHook(filepath.Base(name))
	}
	return within(at, name)
}

// isHook reports whether git runs a file with this name automatically.
func isHook(name string) bool {
	name = strings.TrimSuffix(strings.ToLower(name), ".exe")
	return slices.Contains(hooks(), name) || strings.HasPrefix(name, "p4-")
}

func hooks() []string {
	return []string{
		"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
		"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "update", "proc-receive", "post-receive", "post-update",
		"reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change",
	}
}

// Module returns the git directory of a work tree that is stored elsewhere and refers back to the tree, as
// for submodules: the file .git alone proves nothing. top is absolute and free of symbolic links.
func Module(top string) (git string, ok bool) {
	git, common, ok := gitdir.Dirs(top)
	if !ok || git != common || within(top, git) || within(git, top) {
		return "", false
	}
	text, err := safeopen.ReadFile(filepath.Join(git, "config"), maxFileBytes, safeopen.NoFollow)
	if err != nil {
		return "", false
	}
	named := ""
	for _, s := range readSettings(text) {
		if s.is("core", "worktree") && s.sub == "" {
			named = s.value
		}
	}
	if named != "" && !filepath.IsAbs(named) {
		named = filepath.Join(git, filepath.FromSlash(named))
	}
	return git, named != "" && followed(named) == top
}

// GitDirs returns the git directory of a work tree that has it elsewhere, a linked work tree or a submodule: commits
// need to write there. It refers back to the tree, because anyone may have written the file .git.
func GitDirs(top string) []string {
	if repository, ok := gitdir.Link(top); ok {
		return []string{repository}
	}
	if repository, ok := Module(top); ok {
		return []string{repository}
	}
	return nil // a directory, or not a repository
}

// places returns the slash-separated paths in a workspace that a pointer guards.
func (p pointer) places(workspace string) []string {
	rel, err := filepath.Rel(workspace, p.path)
	switch {
	case err == nil && rel != "." && filepath.IsLocal(rel):
		return []string{filepath.ToSlash(rel)}
	case err == nil && rel == "." && p.hooks:
		return hooks()
	}
	return nil
}

// pointersAbove returns the references in the settings of all repositories that contain a directory.
func (l List) pointersAbove(dir string) []pointer {
	var found []pointer
	files := map[string][]setting{}
	for top := dir; ; top = filepath.Dir(top) {
		last := filepath.Dir(top) == top
		if _, err := os.Lstat(filepath.Join(top, ".git")); err == nil || last {
			found = append(found, pointersOf(l.home, top, files)...)
		}
		if last {
			return found
		}
	}
}

// Pointed returns the files and directories that git's settings refer to for a workspace, and those in it, relative
// and slash-separated. They may not exist.
func (l List) Pointed(workspace string) (paths, names []string) {
	for _, p := range l.pointersAbove(workspace) {
		paths, names = append(paths, p.path), append(names, p.places(workspace)...)
	}
	return paths, names
}

// pointedAt returns an error for a path of a workspace that the git settings of the user, or of a repository
// that contains it, refer to.
func (l List) pointedAt(workspace, rel string) error {
	path := filepath.Join(workspace, rel)
	for _, p := range l.pointersAbove(filepath.Dir(path)) {
		if p.guards(workspace, path) && !l.lifted(p.path, path) {
			return refused(rel, "git's settings refer to it, and git runs it")
		}
	}
	return nil
}

// gitDirectory returns an error for a path inside a directory that git accepts as a repository, or would
// after the write.
func (l List) gitDirectory(workspace, rel string, parts []string) error {
	dir := workspace
	for _, part := range parts {
		at := filepath.Join(dir, part)
		if isRepository(dir, part) {
			guarded := dir
			if dir == workspace {
				guarded = at // ignore a permission for the whole workspace
			}
			if !l.lifted(guarded, filepath.Join(workspace, rel)) {
				return refused(rel, "git would treat the directory as a repository and run its hooks")
			}
		}
		dir = at
	}
	return nil
}

// isRepository reports whether git accepts a directory as a repository once it contains an entry.
func isRepository(dir, entry string) bool {
	has := func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err == nil || plain(entry) == strings.ToLower(name)
	}
	return has("HEAD") && (has("commondir") || has("objects") && has("refs"))
}

var (
	valueLine  = lazyregexp.New(`^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
	headerLine = lazyregexp.New(`^[ \t]*\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\]|\\.)*)"[ \t]*)?\](.*)$`)
)

// readSettings parses a config like git and skips what it does not understand. It finds references; it does
// not decide what is harmless.
func readSettings(text []byte) []setting {
	var found []setting
	var at setting
	joined := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\\\n", "")
	for line := range strings.SplitSeq(strings.TrimPrefix(joined, "\ufeff"), "\n") {
		if m := headerLine().FindStringSubmatch(line); m != nil {
			section, sub, _ := strings.Cut(m[1], ".")
			at = setting{section: strings.ToLower(section), sub: cmp.Or(m[2], sub)}
			line = m[3]
		}
		if m := valueLine().FindStringSubmatch(line); m != nil {
			s := at
			s.key, s.value = strings.ToLower(m[1]), unquote(m[2])
			found = append(found, s)
		}
	}
	return found
}

// unquote returns a value as git reads it, without quotes and comments.
func unquote(value string) string {
	var b strings.Builder
	quoted := false
	for i := 0; i < len(value); i++ {
		switch c := value[i]; {
		case c == '"':
			quoted = !quoted
		case c == '\\' && i+1 < len(value):
			i++
			b.WriteByte(value[i])
		case !quoted && (c == '#' || c == ';'):
			return strings.TrimSpace(b.String())
		default:
			b.WriteByte(c)
		}
	}
	return strings.TrimSpace(b.String())
}

// setting is a line of a config.
type setting struct{ section, sub, key, value string }

func (s setting) is(section, key string) bool { return s.section == section && s.key == key }
