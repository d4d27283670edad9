package corpus

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// result is one command of a home's story, and its result.
type result struct {
	Run string            `json:"run"`           // the command line, quoted as for a shell
	Env map[string]string `json:"env,omitempty"` // for this command only
	Set map[string]string `json:"set,omitempty"` // variables for later commands, with their paths in the output
	// Retry repeats the command while it exits with this status, because a killed process may still hold a
	// lock.
	Retry int `json:"retry,omitempty"`
	Got   any `json:"got"` // {exit, code, out}
}

// difference is a place at which a command's output has changed.
type difference struct {
	home, command, path string
	was, is             any
}

// absent represents a missing value.
type absent struct{}

// line formats the difference as a line of the list of differences.
func (d difference) line() string {
	return "at | " + strings.Join(d.fields(), " | ")
}

func (d difference) fields() []string {
	return []string{d.home, d.command, d.path, short(d.was), short(d.is)}
}

// short formats a value for a line; long ones as a checksum.
func short(v any) string {
	if v == (absent{}) {
		return "-"
	}
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
	line := strings.TrimSpace(text.String())
	if len(line) > 160 || strings.Contains(line, " | ") {
		return fmt.Sprintf("sha256:%.12x", sha256.Sum256([]byte(line)))
	}
	return line
}

// comparison compares the outputs of one home's story with the recorded ones.
type comparison struct {
	home, command string
	rules         *rules
	named         map[string]string // the values of numbered placeholders, such as ‹thread 1›
	found         []difference
}

func (c *comparison) differ(path string, was, is any) {
	d := difference{c.home, c.command, path, was, is}
	if !c.rules.allow(d) {
		c.found = append(c.found, d)
	}
}

func (c *comparison) value(path string, was, is any) {
	switch old := was.(type) {
	case map[string]any:
		if now, ok := is.(map[string]any); ok {
			c.object(path, old, now)
			return
		}
	case []any:
		if now, ok := is.([]any); ok && c.list(path, old, now) {
			return
		}
	case string:
		if c.text(path, old, is) {
			return
		}
	default:
		if was == is {
			return
		}
	}
	c.differ(path, was, is)
}

func (c *comparison) object(path string, was, is map[string]any) {
	seen := map[string]bool{}
	for _, key := range slices.Sorted(maps.Keys(was)) {
		now, ok := is[key]
		name := key
		if !ok {
			name = c.rules.renamed(key, is)
			now, ok = is[name]
		}
		seen[name] = true
		if !ok {
			now = absent{}
			c.differ(path+"."+key, was[key], now)
			continue
		}
		c.value(path+"."+key, was[key], now)
	}
	for _, key := range slices.Sorted(maps.Keys(is)) {
		if !seen[key] {
			c.differ(path+"."+key, absent{}, is[key])
		}
	}
}

// list compares lists by element. Lists of different lengths differ as a whole, unless rules list the removed
// or added elements.
func (c *comparison) list(path string, was, is []any) bool {
	if len(was) > len(is) {
		was = c.rules.without("less", difference{home: c.home, command: c.command, path: path}, was)
	} else if len(was) < len(is) {
		is = c.rules.without("more", difference{home: c.home, command: c.command, path: path}, is)
	}
	if len(was) != len(is) {
		return false
	}
	for i := range was {
		c.value(fmt.Sprintf("%s[%d]", path, i), was[i], is[i])
	}
	return true
}

// text compares texts by line, and placeholders with their values.
func (c *comparison) text(path, was string, is any) bool {
	if number, ok := is.(json.Number); ok {
		return c.stands(was, number.String())
	}
	now, ok := is.(string)
	if !ok {
		return false
	}
	if was == now || c.stands(was, now) {
		return true
	}
	if today := c.rules.reworded(was); strings.HasPrefix(was, "uwf ") && (today == now || c.stands(today, now)) {
		return true
	}
	old, new := strings.Split(was, "\n"), strings.Split(now, "\n")
	if len(old) == 1 || len(old) != len(new) {
		return false
	}
	for i := range old {
		if old[i] != new[i] && !c.stands(old[i], new[i]) {
			c.differ(fmt.Sprintf("%s:%d", path, i+1), old[i], new[i])
		}
	}
	return true
}

// classes are the patterns of values that may differ between runs.
var classes = map[string]string{
	"thread": `[0-7][0-9A-HJKMNP-TV-Z]{25}`,
	"hash":   `[0-9A-F][0-9A-HJKMNP-TV-Z]{12}`,
	"commit": `[0-9a-f]{7,40}`,
	"seal":   `[0-9a-f]{64}`,
	"time":   `1[0-9]{9}(?:[0-9]{3})?|20[0-9]{2}-[0-9]{2}-[0-9]{2}(?:[T ][0-9:.]+Z?)?|[0-9]{2}:[0-9]{2}:[0-9]{2}`,
	"took":   `[0-9]+(?:\.[0-9]+)?(?:ms|s|m|h)?`,
	"size":   `-?[0-9]+`,
	"pid":    `[0-9]+(?:-[0-9]+)?`,
}

const marks = `‹([a-z]+)(?: ([0-9]+))?›`

// stands reports whether a text matches a pattern with placeholders for varying values. A numbered
// placeholder has the same value everywhere in a story.
func (c *comparison) stands(pattern, text string) bool {
	mark := regexp.MustCompile(marks)
	found := mark.FindAllStringSubmatchIndex(pattern, -1)
	if found == nil {
		return false
	}
	var expression strings.Builder
	var names []string
	at := 0
	for _, m := range found {
		names = append(names, pattern[m[0]:m[1]])
		expression.WriteString(regexp.QuoteMeta(pattern[at:m[0]]) + "(" + classes[pattern[m[2]:m[3]]] + ")")
		at = m[1]
	}
	expression.WriteString(regexp.QuoteMeta(pattern[at:]))
	values := regexp.MustCompile(`^` + expression.String() + `$`).FindStringSubmatch(text)
	if values == nil {
		return false
	}
	for i, name := range names {
		if !strings.Contains(name, " ") {
			continue
		}
		if known, ok := c.named[name]; ok && known != values[i+1] {
			return false
		}
		c.named[name] = values[i+1]
	}
	return true
}

// split splits a line into words at spaces outside quotes.
func split(line string) ([]string, error) {
	var words []string
	var word strings.Builder
	quote, begun := rune(0), false
	for _, r := range line {
		switch {
		case quote != 0 && r == quote:
			quote = 0
		case quote != 0:
			word.WriteRune(r)
		case r == '\'' || r == '"':
			quote, begun = r, true
		case r == ' ':
			if begun {
				words = append(words, word.String())
				word.Reset()
			}
			begun = false
		default:
			begun = true
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, fmt.Errorf("%s: a quote is open", line)
	}
	if begun {
		words = append(words, word.String())
	}
	return words, nil
}
