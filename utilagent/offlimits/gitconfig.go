package offlimits

import (
	"bytes"
	"cmp"
	"strings"
	"unicode/utf8"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

var (
	sectionLine = lazyregexp.New(`^[ \t]*\[([A-Za-z0-9-]+)(?: +"([^"\\]*)")?\][ \t]*$`)
	valueLine   = lazyregexp.New(`^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
)

// ground says what values of a config mean. Paths are absolute.
type ground struct {
	git      string   // the directory that the config is in
	top      string   // of the work tree; "": it is not known
	writable []string // directories that a command can write to
	allowed  []string // those that the user allows to be written, by name
}

// tamed returns a changed config of git without the settings that are new and
// could start a program. Those that `git init`, `git clone`, `git remote add` and
// `git push -u` leave behind may stay. A config that is not plain to read cannot be
// tamed, nor one in which a setting took the place of another.
func tamed(old, changed []byte, g ground) (kept []byte, ok bool) {
	if bytes.Equal(old, changed) {
		return changed, true
	}
	before, ok := parseConfig(old)
	after, ok2 := parseConfig(changed)
	if !ok || !ok2 {
		return nil, false
	}
	known, still, remotes := map[setting]bool{}, map[setting]bool{}, map[string]bool{}
	for _, l := range before {
		known[l.setting] = true
	}
	for _, l := range after {
		still[l.setting] = true
		if l.is("remote", "url") {
			remotes[l.sub] = known[l.setting] || l.harmless(g, nil)
		}
	}
	dropped := map[setting]bool{}
	// The head of a section waits for what is kept of it; without anything it goes,
	// unless nothing was dropped of it either.
	var head string
	lost := false
	flush := func(wanted bool) {
		if wanted {
			kept = append(kept, head...)
		}
		head, lost = "", false
	}
	for _, l := range after {
		// Without its address the name of a remote would be one.
		homeless := l.section == "remote" && l.sub != "" && !remotes[l.sub]
		switch {
		case l.header():
			flush(!lost)
			head = l.text
		case l.key != "" && !known[l.setting] && (homeless || !l.harmless(g, remotes)):
			dropped[l.name()], lost = true, true
		default:
			flush(true)
			kept = append(kept, l.text...)
		}
	}
	flush(!lost)
	for _, l := range before {
		if dropped[l.name()] && !still[l.setting] {
			return nil, false
		}
	}
	return kept, true
}

// line is one of a config: a setting, or with an empty key something else.
type line struct {
	setting
	text string
}

func (l line) header() bool { return l.key == "" && l.section != "" }

// parseConfig reads a config. It is stricter than git: a line that goes on in the
// next, or holds a section and a value, is not read at all.
func parseConfig(text []byte) ([]line, bool) {
	if !utf8.Valid(text) || bytes.ContainsAny(text, "\x00\ufeff") {
		return nil, false
	}
	var found []line
	var at setting
	for whole := range strings.Lines(string(text)) {
		short := strings.TrimRight(whole, "\r\n")
		switch trimmed := strings.TrimSpace(short); {
		case trimmed == "" || trimmed[0] == '#' || trimmed[0] == ';':
			found = append(found, line{text: whole})
			continue
		case strings.Contains(short, "\r") || strings.HasSuffix(short, `\`):
			return nil, false
		}
		if m := sectionLine().FindStringSubmatch(short); m != nil {
			at = setting{section: strings.ToLower(m[1]), sub: m[2]}
			found = append(found, line{at, whole})
			continue
		}
		m := valueLine().FindStringSubmatch(short)
		if m == nil || at.section == "" {
			return nil, false
		}
		s := at
		s.key, s.value = strings.ToLower(m[1]), m[2]
		found = append(found, line{s, whole})
	}
	return found, true
}

var headerLine = lazyregexp.New(`^[ \t]*\[[ \t]*([A-Za-z0-9.-]+)[ \t]*(?:"((?:[^"\\]|\\.)*)"[ \t]*)?\](.*)$`)

// readSettings reads a config as git does, and passes over what it does not
// understand: it tells what git is pointed at, not what is harmless.
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

func (s setting) is(section, key string) bool { return s.section == section && s.key == key }

// name is the setting without its value.
func (s setting) name() setting {
	s.value = ""
	return s
}
