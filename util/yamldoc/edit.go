package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/united-workforce/uwf/util/yamltext"
)

// The errors of [Set].
var (
	ErrNoMapping  = errors.New("is not a mapping")
	ErrUneditable = errors.New("cannot be changed without changing other lines")
)

// Set sets a value at a path of keys in a text whose root is a mapping, or that is empty. It creates missing
// mappings and preserves comments, order and everything else. The value has the types returned by
// [Node.Value].
//
// Errors: an *[Error] if the text is invalid, [ErrNoMapping] if the path leads through another value,
// [ErrUneditable].
func Set(src []byte, path []string, value any, b Bounds) ([]byte, error) {
	before, err := Parse(src, b)
	if err != nil {
		return nil, err
	}
	want, err := changed(before.Root.Value(), path, value)
	if err != nil {
		return nil, err
	}
	for _, write := range []writer{yamltext.Marshal, yamltext.MarshalWide} {
		text, err := edited(src, before.Root, path, value, write)
		if err != nil {
			return nil, err
		}
		after, err := Parse(text, b)
		if err == nil && reflect.DeepEqual(after.Root.Value(), want) {
			return text, nil
		}
	}
	return nil, ErrUneditable
}

// writer formats a value as YAML.
type writer func(value any) ([]byte, error)

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

// edited changes the text. The library preserves the comments of parts that it doesn't replace.
func edited(src []byte, root *Node, path []string, value any, write writer) ([]byte, error) {
	depth, at := 0, root
	for depth < len(path) && at.Kind == Mapping && at.Get(path[depth]) != nil {
		at = at.Get(path[depth])
		depth++
	}
	if depth < len(path) && at.Kind == Scalar && depth > 0 {
		depth-- // a key without a value
	}
	whole := depth == len(path)
	if depth == 0 && len(root.Entries) == 0 { // only comments
		if root.Kind == Mapping {
			src = bytes.Replace(src, []byte("{}"), nil, 1)
		}
		text, err := write(nested(path, value))
		return append(ended(src), text...), err
	}
	file, err := parser.ParseBytes(src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("edit YAML: %w", err)
	}
	if whole {
		err = replace(file, path, value, write)
	} else if at.Kind == Scalar {
		err = replace(file, path[:depth+1], nestedValue(path[depth+1:], value), write)
	} else {
		err = merge(file, path[:depth], nested(path[depth:], value), write)
	}
	if err != nil {
		return nil, fmt.Errorf("edit YAML: %w", err)
	}
	return ended([]byte(restored(string(src), file.String()))), nil
}

// restored restores all lines before and after a change, because the library changes some whitespace.
func restored(before, after string) string {
	old, new := strings.Split(strings.TrimRight(before, "\n"), "\n"), strings.Split(strings.TrimRight(after, "\n"), "\n")
	head := 0
	for head < min(len(old), len(new)) && solid(old[head]) == solid(new[head]) {
		head++
	}
	tail := 0
	for tail < min(len(old), len(new))-head && solid(old[len(old)-1-tail]) == solid(new[len(new)-1-tail]) {
		tail++
	}
	lines := slices.Concat(old[:head], new[head:len(new)-tail], old[len(old)-tail:])
	return strings.Join(lines, "\n")
}

// solid returns a line without whitespace.
func solid(line string) string { return strings.Join(strings.Fields(line), "") }

// ended makes a non-empty text end with one newline.
func ended(src []byte) []byte {
	src = bytes.TrimRight(src, "\n")
	if len(src) == 0 {
		return nil
	}
	return append(slices.Clip(src), '\n')
}

// nested returns a mapping with a value at a path.
func nested(path []string, value any) yamltext.Map {
	return yamltext.Map{{Key: path[0], Value: nestedValue(path[1:], value)}}
}

func nestedValue(path []string, value any) any {
	if len(path) == 0 {
		return value
	}
	return nested(path, value)
}

func pathTo(path []string) *yaml.Path {
	b := (&yaml.PathBuilder{}).Root()
	for _, part := range path {
		b = b.Child(part)
	}
	return b.Build()
}

// replace replaces an existing value and keeps its comment.
func replace(file *ast.File, path []string, value any, write writer) error {
	old, err := pathTo(path).FilterFile(file)
	if err != nil {
		return err
	}
	node, err := nodeOf(value, write)
	if err != nil {
		return err
	}
	parent, err := pathTo(path[:len(path)-1]).FilterFile(file)
	if err == nil {
		err = errors.Join(node.SetComment(old.GetComment()), pathTo(path).ReplaceWithNode(file, node))
	}
	above, _ := parent.(*ast.MappingNode)
	if m, ok := node.(*ast.MappingNode); err == nil && ok && above != nil && !m.IsFlowStyle { // its colon was aligned
		m.AddColumn(above.Values[0].Key.GetToken().Position.Column + 2 - m.Values[0].Key.GetToken().Position.Column)
	}
	return err
}

// nodeOf converts a value to a node of the library, as written after a key.
func nodeOf(value any, write writer) (ast.Node, error) {
	const key = "key"
	text, err := write(yamltext.Map{{Key: key, Value: value}})
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	return pathTo([]string{key}).FilterFile(file)
}

// merge adds entries to an existing mapping.
func merge(file *ast.File, path []string, value yamltext.Map, write writer) error {
	text, err := write(value)
	if err != nil {
		return err
	}
	return pathTo(path).MergeFromReader(file, bytes.NewReader(text))
}

// ErrNoKey means that there is no value at a path.
var ErrNoKey = errors.New("is missing")

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

// equal compares documents; an empty document equals an empty mapping.
func equal(a, b any) bool {
	if m, ok := b.(map[string]any); ok && len(m) == 0 && a == nil {
		return true
	}
	return reflect.DeepEqual(a, b)
}

// cut removes the lines of an entry of a mapping, or returns nil if the mapping doesn't have separate lines
// for each.
func cut(src []byte, m *Node, key string) []byte {
	lines := slices.Collect(strings.Lines(string(src)))
	i := slices.IndexFunc(m.Entries, func(e Entry) bool { return e.Key == key })
	first := m.Entries[i].Pos.Line - 1
	column := m.Entries[i].Pos.Column - 1
	if first >= len(lines) || len(lines[first]) < column || strings.TrimSpace(lines[first][:column]) != "" {
		return nil
	}
	sequence := m.Entries[i].Value.Kind == Sequence
	end := first + 1 // after the last line of the entry
scan:
	for j := end; j < len(lines); j++ {
		text := strings.TrimLeft(lines[j], " ")
		indent := len(lines[j]) - len(text)
		switch text = strings.TrimSpace(text); {
		case text == "" || text[0] == '#' && indent <= column: // it can belong to the next entry
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

// ParseAnswer is [Parse] for a value written by a model or by hand: a '#' directly followed by text is text,
// as in "note: Fixes #42" and "colour: #fff", where YAML has a comment. An ambiguous '#' is an error. "# "
// starts a comment.
func ParseAnswer(src []byte, b Bounds) (*Doc, error) { return parse(src, b, true) }

// hideSigns replaces each '#' that is text with an unused character, so that the library doesn't take it for
// a comment. sign is that character, or "" if the text contains all candidates.
func hideSigns(text string) (hidden, sign string) {
	const first, last = '\ue000', '\uf8ff' // private use
	for r := first; r <= last; r++ {
		if !strings.ContainsRune(text, r) {
			sign = string(r)
			break
		}
	}
	if sign == "" || !strings.Contains(text, "#") {
		return text, sign
	}
	var b strings.Builder
	for line := range strings.Lines(text) {
		before := byte('\n') // last character other than whitespace
		for i := range len(line) {
			if isSign(line, i, before) {
				b.WriteString(sign)
			} else {
				b.WriteByte(line[i])
			}
			if line[i] != ' ' && line[i] != '\t' {
				before = line[i]
			}
		}
	}
	return b.String(), sign
}

// isSign reports whether a '#' that starts a comment in YAML is text. After a closing quote or bracket it
// isn't, because only a comment can follow there.
func isSign(line string, i int, before byte) bool {
	return line[i] == '#' && i > 0 && strings.IndexByte(" \t[{,", line[i-1]) >= 0 &&
		i+1 < len(line) && strings.IndexByte(" \t\n", line[i+1]) < 0 &&
		strings.IndexByte("\n\"']}", before) < 0
}

// maybeText reports whether a comment might be intended as text: a '#' directly followed by text, where the
// previous value can continue or is missing.
func (l *lexer) maybeText() bool {
	if l.sign == "" || len(l.out) == 0 || strings.IndexByte(" \t\n", l.text[l.at+1]) >= 0 {
		return false
	}
	last := l.out[len(l.out)-1]
	return last.kind != tokQuoted && last.kind != tokBlock && !last.closes()
}
