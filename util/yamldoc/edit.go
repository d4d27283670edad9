package yamldoc

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/united-workforce/uwf/util/yamltext"
)

// The errors of [Set] and [Unset].
var (
	ErrNoMapping  = errors.New("is not a mapping")
	ErrUneditable = errors.New("cannot be changed without changing other lines")
	ErrNoKey      = errors.New("is missing")
)

// Set sets a value at a path of keys in a text whose root is a mapping, or that is empty. It creates missing
// mappings and preserves comments, order and everything else. The value has the types returned by
// [Node.Value].
//
// Errors: an *[Error] if the text is invalid, [ErrNoMapping] if the path leads through another value,
// [ErrUneditable].
func Set(src []byte, path []string, value any, b Bounds) ([]byte, error) {
	doc, err := Parse(src, b)
	if err != nil {
		return nil, err
	}
	want, err := changed(doc.Root.Value(), path, value)
	if err != nil {
		return nil, err
	}
	e := editor{text: doc.text}
	n, at, rest := doc.Root, Entry{}, path
	inside := false // of braces
	for len(rest) > 0 && n.Kind == Mapping {
		i := slices.IndexFunc(n.Entries, func(e Entry) bool { return e.Key == rest[0] })
		if i < 0 {
			break
		}
		inside = n.flow
		at, n, rest = n.Entries[i], n.Entries[i].Value, rest[1:]
	}
	for _, key := range slices.Backward(rest) {
		value = map[string]any{key: value}
	}
	switch {
	case n == doc.Root && len(n.Entries) == 0: // only comments, or {}
		if e.splice(n.from, n.to, ""); strings.TrimSpace(e.text) == "" {
			e.text = ""
		}
		err = e.add(value, len(e.text), 0)
	case len(rest) > 0 && n.Kind == Mapping && n.flow:
		err = e.insert(value, n)
	case len(rest) > 0 && n.Kind == Mapping:
		err = e.add(value, e.lineAfter(n.to), n.Pos.Column-1)
	default:
		err = e.replace(value, at, inside)
	}
	if err != nil {
		return nil, err
	}
	return e.finish(src, want, b)
}

// changed returns the value of a document with a new value at a path.
func changed(root any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	m, ok := root.(map[string]any)
	switch {
	case root == nil:
		m = map[string]any{}
	case !ok:
		return nil, fmt.Errorf("the parent of %q %w", path[0], ErrNoMapping)
	}
	below, err := changed(m[path[0]], path[1:], value)
	if err != nil {
		return nil, err
	}
	m[path[0]] = below
	return m, nil
}

// editor changes a text.
type editor struct{ text string }

// finish returns the changed text with the line ends of src, if its value is the one that is wanted.
func (e editor) finish(src []byte, want any, b Bounds) ([]byte, error) {
	text := strings.TrimRight(e.text, "\n")
	if text != "" {
		text += "\n"
	}
	after, err := Parse([]byte(text), b)
	if m, _ := want.(map[string]any); err != nil || !reflect.DeepEqual(after.Root.Value(), want) && (len(m) > 0 || after.Root.Value() != nil) {
		return nil, ErrUneditable
	}
	if strings.Contains(string(src), "\r\n") {
		text = strings.ReplaceAll(text, "\n", "\r\n")
	}
	return []byte(text), nil
}

// splice replaces the text between two offsets.
func (e *editor) splice(from, to int, with string) { e.text = e.text[:from] + with + e.text[to:] }

// lineAfter returns the offset of the line after the one with the last byte before an offset.
func (e *editor) lineAfter(at int) int {
	at = max(at-1, 0)
	return at + strings.IndexByte(e.text[at:], '\n') + 1
}

// add inserts entries as lines of a mapping in a column.
func (e *editor) add(entries any, at, column int) error {
	lines, err := yamltext.Marshal(entries)
	e.splice(at, at, indented(string(lines), column))
	return err
}

// indented indents lines.
func indented(lines string, column int) string {
	var b strings.Builder
	for line := range strings.Lines(lines) {
		if line != "\n" {
			b.WriteString(strings.Repeat(" ", column))
		}
		b.WriteString(line)
	}
	return b.String()
}

// insert adds entries to a mapping in braces.
func (e *editor) insert(entries any, n *Node) error {
	text, err := inBrackets(entries)
	text, at := strings.TrimSpace(text[1:len(text)-1]), n.to-1
	if len(n.Entries) > 0 {
		text, at = ", "+text, n.Entries[len(n.Entries)-1].end()
	}
	e.splice(at, at, text)
	return err
}

// end returns the offset after an entry.
func (e Entry) end() int { return max(e.after, e.Value.to) }

// inBrackets formats a value for a place in brackets.
func inBrackets(value any) (string, error) {
	text, err := yamltext.MarshalWide(yamltext.Map{{Key: "k", Value: value}})
	if first, more, _ := strings.Cut(string(text), "\n"); err != nil || more == "" && !strings.ContainsAny(first, "|>") {
		return strings.TrimPrefix(first, "k: "), err
	}
	text, err = json.Marshal(value)
	return string(text), err
}

// replace replaces the value of an entry and keeps the comment after the key or the value.
func (e *editor) replace(value any, at Entry, inside bool) error {
	if inside {
		text, err := inBrackets(value)
		e.splice(at.after, at.end(), " "+text)
		return err
	}
	text, err := yamltext.Marshal(yamltext.Map{{Key: "k", Value: value}})
	first, lines, _ := strings.Cut(strings.TrimPrefix(string(text), "k:"), "\n")
	if lines != "" {
		lines = "\n" + strings.TrimSuffix(indented(lines, at.Pos.Column-1), "\n")
	}
	end, comment := at.end(), ""
	newline := at.after + strings.IndexByte(e.text[at.after:], '\n')
	switch {
	case newline < at.Value.from: // the value has lines of its own
		if _, text, found := strings.Cut(e.text[at.after:newline], " #"); found {
			comment = " #" + text
		}
	case lines != "" && end <= newline:
		comment, end = strings.TrimRight(e.text[end:newline], " "), newline
	}
	e.splice(at.after, end, first+comment+lines)
	return err
}

// Unset removes the value at a path of keys, and a mapping that becomes empty. It preserves comments, order
// and everything else. It returns the errors of [Set], and [ErrNoKey].
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
	e := editor{doc.text}
	e.remove(parent, slices.IndexFunc(parent.Entries, func(e Entry) bool { return e.Key == path[len(path)-1] }))
	return e.finish(src, without(doc.Root.Value(), path), b)
}

// without returns a value without the entry at a path.
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

// remove removes an entry of a mapping: its lines, or its text in braces.
func (e *editor) remove(m *Node, i int) {
	from, to := m.Entries[i].from, m.Entries[i].end()
	switch {
	case !m.flow:
		from, to = strings.LastIndexByte(e.text[:from], '\n')+1, e.lineAfter(to)
	case i+1 < len(m.Entries):
		to = m.Entries[i+1].from
	case i > 0:
		from = m.Entries[i-1].end()
	}
	e.splice(from, to, "")
}
