// Package workflowdiff compares two workflows by their text, see package workflowtext: the order in a file doesn't
// matter, except in lists. Two definitions without differences are stored as the same node, provided that the store
// sets their schemas' titles. It also compares other texts by lines.
package workflowdiff

import (
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/util/plaintext"
	"github.com/united-workforce/uwf/util/yamldoc"
)

// Op is the kind of a change.
type Op string

// The kinds of changes.
const (
	Added   Op = "added"
	Removed Op = "removed"
	Changed Op = "changed"
)

// Change is one difference. Path holds the keys in the text, such as ["roles", role, "goal"].
type Change struct {
	Op   Op       `json:"op"`
	Path []string `json:"path"`
	Old  any      `json:"old,omitempty"`
	New  any      `json:"new,omitempty"`
}

// Compare lists the changes from a to b, in the order of b's text, and the differing lines of the texts, as [Lines]
// does, with the keys that lead to them.
func Compare(a, b workflow.Definition) (changes []Change, lines []string, err error) {
	before, old, err := read(a)
	if err != nil {
		return nil, nil, err
	}
	after, new, err := read(b)
	if err != nil {
		return nil, nil, err
	}
	if changes = compare([]Change{}, nil, old, new); len(changes) > 0 {
		lines = near(lineDiff(textLines(before), textLines(after)), true)
	}
	return changes, lines, nil
}

func read(def workflow.Definition) (text string, root *yamldoc.Node, err error) {
	src, err := workflowtext.YAML(def)
	if err != nil {
		return "", nil, err
	}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{Bytes: len(src)})
	if err != nil {
		return "", nil, err
	}
	return string(src), doc.Root, nil
}

// compare adds the changes from a to b, down to the keys that differ.
func compare(changes []Change, path []string, a, b *yamldoc.Node) []Change {
	at := func(key string) []string { return append(slices.Clone(path), key) }
	if a.Kind != yamldoc.Mapping || b.Kind != yamldoc.Mapping {
		if old, new := a.Value(), b.Value(); !reflect.DeepEqual(old, new) {
			changes = append(changes, Change{Changed, path, old, new})
		}
		return changes
	}
	for _, e := range b.Entries {
		if was := a.Get(e.Key); was != nil {
			changes = compare(changes, at(e.Key), was, e.Value)
		} else {
			changes = append(changes, Change{Added, at(e.Key), nil, e.Value.Value()})
		}
	}
	for _, e := range a.Entries {
		if b.Get(e.Key) == nil {
			changes = append(changes, Change{Removed, at(e.Key), e.Value.Value(), nil})
		}
	}
	return changes
}

// Lines compares two texts line by line. Old lines start with "-", new ones with "+". Equal lines far from
// any change are omitted.
func Lines(before, after string) []string {
	return near(lineDiff(textLines(before), textLines(after)), false)
}

func textLines(s string) []string {
	if s == "" {
		return nil
	}
	return strings.Split(plaintext.Escape(strings.TrimSuffix(s, "\n")), "\n")
}

// context is the number of equal lines shown around a change.
const context = 2

// lineDiff marks the lines of two texts with "-", "+" or " ". If very many lines differ, it doesn't search for equal
// ones among them, which would take quadratic time.
func lineDiff(a, b []string) []string {
	const most = 2000
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	var marked []string
	for _, line := range a[:head] {
		marked = append(marked, "  "+line)
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) > most || len(y) > most {
		marked = append(marked, each("- ", x)...)
		marked = append(marked, each("+ ", y)...)
	} else {
		marked = append(marked, match(x, y)...)
	}
	for _, line := range a[len(a)-tail:] {
		marked = append(marked, "  "+line)
	}
	return marked
}

func each(mark string, lines []string) []string {
	out := make([]string, len(lines))
	for i, line := range lines {
		out[i] = mark + line
	}
	return out
}

// match returns the longest common subsequence.
func match(a, b []string) []string {
	longest := make([][]int, len(a)+1) // of a[i:] and b[j:]
	for i := range longest {
		longest[i] = make([]int, len(b)+1)
	}
	for i := len(a) - 1; i >= 0; i-- {
		for j := len(b) - 1; j >= 0; j-- {
			if a[i] == b[j] {
				longest[i][j] = longest[i+1][j+1] + 1
			} else {
				longest[i][j] = max(longest[i+1][j], longest[i][j+1])
			}
		}
	}
	var out []string
	i, j := 0, 0
	for i < len(a) && j < len(b) {
		switch {
		case a[i] == b[j]:
			out = append(out, "  "+a[i])
			i, j = i+1, j+1
		case longest[i+1][j] >= longest[i][j+1]:
			out = append(out, "- "+a[i])
			i++
		default:
			out = append(out, "+ "+b[j])
			j++
		}
	}
	return append(append(out, each("- ", a[i:])...), each("+ ", b[j:])...)
}

// near omits equal lines without a change nearby, except, if keys is set, the less indented ones before it.
func near(marked []string, keys bool) []string {
	keep := make([]bool, len(marked))
	for i, line := range marked {
		if line[0] == ' ' {
			continue
		}
		for k := max(0, i-context); k <= min(len(marked)-1, i+context); k++ {
			keep[k] = true
		}
		for k, least := i, indent(line); keys && k >= 0 && least > 0; k-- {
			if n := indent(marked[k]); n < least {
				keep[k], least = true, n
			}
		}
	}
	var out []string
	for i, line := range marked {
		switch {
		case keep[i]:
			out = append(out, line)
		case i == 0 || keep[i-1]:
			out = append(out, "  …")
		}
	}
	return out
}

// indent returns the indentation of a marked line; that of an empty one is large.
func indent(line string) int {
	if text := strings.TrimLeft(line[1:], " "); text != "" {
		return len(line) - 2 - len(text)
	}
	return math.MaxInt
}
