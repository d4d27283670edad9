// Package ignore says which paths the .gitignore files of a tree exclude, where
// git itself cannot be asked.
//
// It reads patterns as git does; only what depends on git's own state is left
// out: files that are tracked although they match, and the lists of the user and
// of the repository (core.excludesFile, info/exclude).
package ignore

import (
	"slices"
	"strings"

	"github.com/bmatcuk/doublestar/v4"
)

// List is the .gitignore files from the root of a tree down to one directory.
// The zero value excludes nothing.
type List struct {
	rules []rule
}

type rule struct {
	base    string // the file's directory with a "/" at its end, or ""
	pattern string // of doublestar, relative to base
	exclude bool   // false: the pattern began with "!"
	dirOnly bool
}

// With returns the list with the .gitignore file of the directory dir added. dir
// is relative to the root, with slashes, "" for the root.
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

// Excludes tells whether a file or directory is excluded. What is in an excluded
// directory is excluded too; the caller does not go into it.
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

// parse reads a line; it may hold no pattern.
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

// translate turns git's pattern into one of doublestar: braces mean nothing to
// git, "**" only means directories where it stands between slashes, and a "**"
// at the end does not match the directory itself.
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
			b.WriteByte(c)
			i++
			b.WriteByte(s[i])
		case c == '{' || c == '}' || c == ',':
			b.WriteString("\\" + string(c))
		default:
			b.WriteByte(c)
		}
	}
	return b.String()
}

// withoutTrailingSpaces keeps a space that a backslash protects.
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
