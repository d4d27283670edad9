package corpus

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// rule is one line in the list of differences.
type rule struct {
	line   int
	kind   string
	fields []string
	used   bool
}

// rules are the intended differences.
type rules struct {
	mu  sync.Mutex
	all []*rule
}

// kinds contains the number of fields after each kind of rule.
var kinds = map[string]int{"command": 2, "gone": 1, "file": 3, "key": 2, "value": 3, "added": 1, "removed": 1, "line": 2, "at": 5, "less": 4, "more": 4}

// parseRules parses the list of differences. Each block of rules begins with its reason.
func parseRules(text string) (*rules, error) {
	r := &rules{}
	var errs []error
	reason := ""
	for i, line := range strings.Split(text, "\n") {
		fail := func(what string) { errs = append(errs, fmt.Errorf("testdata/differences:%d: %s", i+1, what)) }
		line = strings.TrimRight(line, " ")
		if line == "" {
			reason = ""
			continue
		}
		if strings.HasPrefix(line, "#") {
			continue
		}
		if after, ok := strings.CutPrefix(line, "reason: "); ok {
			reason = strings.TrimSpace(after)
			if strings.HasPrefix(reason, "TODO") {
				fail("write the reason")
			}
			continue
		}
		fields := strings.Split(line, " | ")
		switch n, ok := kinds[fields[0]]; {
		case !ok:
			fail("there is no kind of difference " + fields[0])
		case len(fields) != n+1:
			fail(fmt.Sprintf("%s has %d fields behind it, separated by ' | '", fields[0], n))
		case reason == "":
			fail("a block of differences begins with 'reason: ' and the issue or the page that wants them")
		}
		r.all = append(r.all, &rule{line: i + 1, kind: fields[0], fields: fields[1:]})
	}
	return r, errors.Join(errs...)
}

func loadRules() (*rules, error) {
	text, err := os.ReadFile("testdata/differences")
	if err != nil {
		return nil, err
	}
	return parseRules(string(text))
}

// use marks the first matching rule of a kind as used.
func (r *rules) use(kind string, fits func(fields []string) bool) *rule {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rule := range r.all {
		if rule.kind == kind && fits(rule.fields) {
			rule.used = true
			return rule
		}
	}
	return nil
}

// allow reports whether a difference is listed.
func (r *rules) allow(d difference) bool {
	key := d.path[strings.LastIndex(d.path, ".")+1:]
	key, _, _ = strings.Cut(key, "[")
	if d.was == (absent{}) {
		return r.use("added", func(f []string) bool { return f[0] == key }) != nil || r.listed(d)
	}
	if d.is == (absent{}) {
		return r.use("removed", func(f []string) bool { return f[0] == key }) != nil || r.listed(d)
	}
	was, is := short(d.was), short(d.is)
	if strings.Contains(d.path, ".out:") && r.use("line", func(f []string) bool { return f[0] == was && f[1] == is }) != nil {
		return true
	}
	return r.use("value", func(f []string) bool { return f[0] == key && f[1] == was && f[2] == is }) != nil || r.listed(d)
}

func (r *rules) listed(d difference) bool {
	line := d.fields()
	return r.use("at", func(f []string) bool {
		for i := range f {
			if f[i] != line[i] && (i > 1 || f[i] != "*") {
				return false
			}
		}
		return true
	}) != nil
}

// without returns a list without the elements listed by rules of a kind for a place.
func (r *rules) without(kind string, at difference, list []any) (left []any) {
	for i := range list {
		if r.use(kind, func(f []string) bool { return slices.Equal(f, []string{at.home, at.command, at.path, strconv.Itoa(i)}) }) == nil {
			left = append(left, list[i])
		}
	}
	return left
}

// renamed returns the new name of a key.
func (r *rules) renamed(key string, in map[string]any) string {
	rule := r.use("key", func(f []string) bool {
		_, ok := in[f[1]]
		return f[0] == key && ok
	})
	if rule == nil {
		return key
	}
	return rule.fields[1]
}

// command rewrites a command line to current names. ok is false if the command no longer exists.
func (r *rules) command(line string) (string, bool) {
	begins := func(words string) bool { return line == words || strings.HasPrefix(line, words+" ") }
	if r.use("gone", func(f []string) bool { return begins(f[0]) }) != nil {
		return "", false
	}
	return r.reworded(line), true
}

// reworded returns a line with the current names of commands.
func (r *rules) reworded(line string) string {
	for _, rule := range r.every("command") {
		if was := " " + rule.fields[0] + " "; strings.Contains(line+" ", was) {
			r.use("command", func(f []string) bool { return f[0] == rule.fields[0] })
			line = strings.TrimSuffix(strings.ReplaceAll(line+" ", was, " "+rule.fields[1]+" "), " ")
		}
	}
	return line
}

// file rewrites a file of a home before the story begins.
func (r *rules) file(name string, text string) string {
	for _, rule := range r.every("file") {
		if strings.HasSuffix(name, rule.fields[0]) && strings.Contains(text, rule.fields[1]) {
			r.use("file", func(f []string) bool { return slices.Equal(f, rule.fields) })
			text = strings.ReplaceAll(text, rule.fields[1], rule.fields[2])
		}
	}
	return text
}

func (r *rules) every(kind string) []*rule {
	return slices.DeleteFunc(slices.Clone(r.all), func(rule *rule) bool { return rule.kind != kind })
}

// unused lists the rules that were not needed.
func (r *rules) unused() []string {
	var lines []string
	for _, rule := range r.all {
		if !rule.used {
			lines = append(lines, fmt.Sprintf("testdata/differences:%d: nothing differs so: remove the line: %s | %s",
				rule.line, rule.kind, strings.Join(rule.fields, " | ")))
		}
	}
	return lines
}
