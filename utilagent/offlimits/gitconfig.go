package offlimits

import (
	"bytes"
	"cmp"
	"regexp"
	"strings"
	"unicode/utf8"
)

var (
	sectionLine = regexp.MustCompile(`^[ \t]*\[([A-Za-z0-9-]+)(?: +"([^"\\]*)")?\][ \t]*$`)
	valueLine   = regexp.MustCompile(`^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
)

// harmless tells whether a changed config of git sets nothing that could start a
// program: what `git init`, `git clone`, `git remote add`, `git push -u` and a
// name for commits leave behind. A config that is not plain to read is not
// harmless, unless it was so before.
func harmless(old, changed []byte) bool {
	if bytes.Equal(old, changed) {
		return true
	}
	before, ok := parseConfig(old)
	after, ok2 := parseConfig(changed)
	if !ok || !ok2 {
		return false
	}
	for setting := range after {
		if !before[setting] && !setting.harmless() {
			return false
		}
	}
	return true
}

var headerLine = regexp.MustCompile(`^[ \t]*\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\]|\\.)*)"[ \t]*)?\](.*)$`)

// readSettings reads a config as git does, and passes over what it does not
// understand: it tells what git is pointed at, not what is harmless.
func readSettings(text []byte) []setting {
	var found []setting
	var at setting
	joined := strings.ReplaceAll(strings.ReplaceAll(string(text), "\r\n", "\n"), "\\\n", "")
	for line := range strings.SplitSeq(strings.TrimPrefix(joined, "\ufeff"), "\n") {
		if m := headerLine.FindStringSubmatch(line); m != nil {
			section, sub, _ := strings.Cut(m[1], ".")
			at = setting{section: strings.ToLower(section), sub: cmp.Or(m[2], sub)}
			line = m[3]
		}
		if m := valueLine.FindStringSubmatch(line); m != nil {
			s := at
			s.key, s.value = strings.ToLower(m[1]), unquote(m[2])
			found = append(found, s)
		}
	}
	return found
}

// unquote is a value as git reads it, without quotes and comments.
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

// parseConfig reads a config. It is stricter than git: a line that goes on in the
// next, or holds a section and a value, is not read at all.
func parseConfig(text []byte) (map[setting]bool, bool) {
	if !utf8.Valid(text) || bytes.ContainsAny(text, "\x00\ufeff") {
		return nil, false
	}
	found := map[setting]bool{}
	var at setting
	for line := range strings.Lines(string(text)) {
		line = strings.TrimRight(line, "\r\n")
		switch trimmed := strings.TrimSpace(line); {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			continue
		case strings.Contains(line, "\r") || strings.HasSuffix(line, `\`):
			return nil, false
		}
		if m := sectionLine.FindStringSubmatch(line); m != nil {
			at = setting{section: strings.ToLower(m[1]), sub: m[2]}
			continue
		}
		m := valueLine.FindStringSubmatch(line)
		if m == nil || at.section == "" {
			return nil, false
		}
		s := at
		s.key, s.value = strings.ToLower(m[1]), m[2]
		found[s] = true
	}
	return found, true
}

func (s setting) harmless() bool {
	switch s.section + "." + s.key {
	case "core.repositoryformatversion", "core.filemode", "core.bare", "core.logallrefupdates", "core.ignorecase", "core.precomposeunicode",
		"core.symlinks", "core.autocrlf", "core.eol", "extensions.objectformat", "user.name", "user.email", "branch.remote", "branch.merge",
		"branch.rebase", "remote.fetch", "pull.rebase", "init.defaultbranch", "submodule.active", "commit.gpgsign", "gc.auto":
		return true
	case "remote.url", "submodule.url":
		// "ext::sh -c …" is a transport that runs a program.
		return !strings.Contains(s.value, "::") && !strings.HasPrefix(strings.Trim(s.value, `"`), "-")
	}
	return false
}
