package yamldoc

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/yamltext"
)

// ErrNoKey says that there is nothing at a path.
var ErrNoKey = errors.New("is not there")

// Unset takes the value at a path of keys out of a text, and a mapping that would be left
// empty with it; comments, order and all else stay as they are. Errors: those of [Set],
// and [ErrNoKey].
func Unset(src []byte, path []string, b Bounds) ([]byte, error) {
	doc, err := Parse(src, b)
	if err != nil {
		return nil, err
	}
	parents := []*Node{doc.Root}
	for _, key := range path[:len(path)-1] {
		next := parents[len(parents)-1].Get(key)
		if next == nil {
			return nil, ErrNoKey
		}
		parents = append(parents, next)
	}
	if parents[len(parents)-1].Get(path[len(path)-1]) == nil {
		return nil, ErrNoKey
	}
	for len(path) > 1 && len(parents[len(path)-1].Entries) == 1 {
		path = path[:len(path)-1]
	}
	parent := parents[len(path)-1]
	want := without(doc.Root.Value(), path)
	text := cut(src, parent, path[len(path)-1])
	if text == nil && len(path) > 1 { // {a: b, c: d}
		m, _ := parent.Value().(map[string]any)
		m = maps.Clone(m)
		delete(m, path[len(path)-1])
		if text, err = edited(src, doc.Root, path[:len(path)-1], m, yamltext.MarshalWide); err != nil {
			return nil, err
		}
	}
	after, err := Parse(text, b)
	if err != nil || !equal(after.Root.Value(), want) {
		return nil, ErrUneditable
	}
	return text, nil
}

// without is a value of mappings without what is at a path.
func without(root any, path []string) any {
	m, _ := root.(map[string]any)
	m = maps.Clone(m)
	if len(path) == 1 {
		delete(m, path[0])
		return m
	}
	m[path[0]] = without(m[path[0]], path[1:])
	return m
}

// equal compares documents: one without anything is an empty one.
func equal(a, b any) bool {
	if m, ok := b.(map[string]any); ok && len(m) == 0 && a == nil {
		return true
	}
	return reflect.DeepEqual(a, b)
}

// cut removes the lines of an entry of a mapping that has a line for each; nil if it has
// not.
func cut(src []byte, m *Node, key string) []byte {
	lines := slices.Collect(strings.Lines(string(src)))
	i := slices.IndexFunc(m.Entries, func(e Entry) bool { return e.Text == key })
	first := m.Entries[i].Pos.Line - 1
	column := m.Entries[i].Pos.Column - 1
	if len(lines[first]) < column || strings.TrimSpace(lines[first][:column]) != "" {
		return nil
	}
	sequence := m.Entries[i].Value.Kind == Sequence
	end := first + 1 // behind the last line of the entry
scan:
	for j := end; j < len(lines); j++ {
		text := strings.TrimLeft(lines[j], " ")
		indent := len(lines[j]) - len(text)
		switch text = strings.TrimSpace(text); {
		case text == "" || text[0] == '#' && indent <= column: // it may belong to what follows
		case indent > column || sequence && indent == column && text[0] == '-':
			end = j + 1
		default:
			break scan
		}
	}
	var out bytes.Buffer
	for j, line := range lines {
		if j < first || j >= end {
			out.WriteString(line)
		}
	}
	return out.Bytes()
}
