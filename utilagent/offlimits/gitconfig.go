package offlimits

import (
	"cmp"
	"strings"

	"github.com/united-workforce/uwf/util/lazyregexp"
)

var (
	valueLine = lazyregexp.New(`^[ \t]*([A-Za-z][A-Za-z0-9-]*)[ \t]*(?:=[ \t]*(.*))?$`)
)

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
