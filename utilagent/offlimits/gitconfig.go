package offlimits

import (
	"bytes"
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
