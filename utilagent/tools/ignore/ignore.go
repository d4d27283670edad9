// Package ignore evaluates the .gitignore files of a tree without git.
//
// It reads patterns as git does, but ignores git's own state: files that are tracked although they match, and
// the exclude lists of the user and the repository (core.excludesFile, info/exclude).
package ignore

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// List contains the .gitignore files from the root of a tree to one directory. The zero value excludes
// nothing.
type List struct {
	rules []rule
}

type rule struct {
	base    string // the file's directory with a trailing "/", or ""
	pattern string // doublestar pattern relative to base
	exclude bool   // false if the pattern began with "!"
	dirOnly bool
}

// With returns the list extended by the .gitignore file of the directory dir, which is slash-separated and
// relative to the root, or "" for the root.
func (l List) With(dir, text string) List {
	if dir != "" {
		dir += "/"
	}
	rules := slices.Clip(l.rules)
	for line := range strings.Lines(strings.TrimPrefix(text, "\ufeff")) {
		if r, ok := parse(strings.TrimSuffix(strings.TrimSuffix(line, "\n"), "\r")); ok {
			r.base = dir
			rules = append(rules, r)
		}
	}
	return List{rules}
}

// Excludes reports whether a file or directory is excluded. The contents of an excluded directory are
// excluded as well; the caller must not descend into it.
func (l List) Excludes(path string, isDir bool) bool {
	for i := len(l.rules) - 1; i >= 0; i-- {
		r := l.rules[i]
		rel, below := strings.CutPrefix(path, r.base)
		if !below || r.dirOnly && !isDir {
			continue
		}
		if ok, err := doublestar.Match(r.pattern, rel); ok && err == nil {
			return r.exclude
		}
	}
	return false
}

// parse parses a line. ok is false if it contains no pattern.
func parse(line string) (rule, bool) {
	line = withoutTrailingSpaces(line)
	if line == "" || line[0] == '#' {
		return rule{}, false
	}
	r := rule{exclude: true}
	if line[0] == '!' {
		r.exclude = false
		line = line[1:]
	}
	if rest, ok := strings.CutSuffix(line, "/"); ok {
		r.dirOnly = true
		line = rest
	}
	anchored := strings.Contains(line, "/")
	line = strings.TrimPrefix(line, "/")
	if !anchored {
		line = "**/" + line
	}
	r.pattern = translate(line)
	return r, line != "" && line != "**/" && doublestar.ValidatePattern(r.pattern)
}

// translate converts git's pattern to doublestar syntax: braces are literal in git, "**" is special only
// between slashes, and a trailing "**" does not match the directory itself.
func translate(s string) string {
	parts := strings.Split(s, "/")
	for i, p := range parts {
		if p != "**" {
			for strings.Contains(p, "**") {
				p = strings.ReplaceAll(p, "**", "*")
			}
			parts[i] = escapeBraces(p)
		}
	}
	if n := len(parts); n > 1 && parts[n-1] == "**" {
		parts = append(parts, "*")
	}
	return strings.Join(parts, "/")
}

func escapeBraces(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case c == '\\' && i+1 < len(s):
			b.WriteString(s[i : i+2])
			i++
		case strings.HasPrefix(s[i:], "[!"), strings.HasPrefix(s[i:], "[^"):
			b.WriteString("[^/-/") // in git, no class matches a slash; "/" alone could begin a range
			i++
		case c == '{' || c == '}' || c == ',':
			b.WriteString("\\" + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// withoutTrailingSpaces trims trailing spaces, except one escaped with a backslash.
func withoutTrailingSpaces(s string) string {
	for strings.HasSuffix(s, " ") {
		before := strings.TrimRight(s[:len(s)-1], `\`)
		if (len(s)-1-len(before))%2 == 1 {
			return s
		}
		s = s[:len(s)-1]
	}
	return s
}
