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

// The ways in which [Set] refuses.
var (
	ErrNoMapping  = errors.New("is not a mapping")
	ErrUneditable = errors.New("cannot be changed without touching something else")
)

// Set puts a value at a path of keys into a text whose root is a mapping, or that
// is empty. Mappings on the way are made; comments, order and all else stay as
// they are. The value is one as [Node.Value] returns it.
//
// Errors: an *[Error] if the text cannot be read, [ErrNoMapping] if something on
// the way is none, [ErrUneditable].
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

// writer writes a value as YAML.
type writer func(value any) ([]byte, error)

// changed is the value of a document with a new value at a path.
func changed(root any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	m, ok := root.(map[string]any)
	switch {
	case root == nil:
		m = map[string]any{}
	case !ok:
		return nil, fmt.Errorf("what should hold %q %w", path[0], ErrNoMapping)
	}
	below, err := changed(m[path[0]], path[1:], value)
	if err != nil {
		return nil, err
	}
	m[path[0]] = below
	return m, nil
}

// edited changes the text. The library keeps the comments of what it does not
// replace.
func edited(src []byte, root *Node, path []string, value any, write writer) ([]byte, error) {
	depth, at := 0, root
	for depth < len(path) && at.Kind == Mapping && at.Get(path[depth]) != nil {
		at = at.Get(path[depth])
		depth++
	}
	if depth < len(path) && at.Kind == Scalar && depth > 0 {
		depth-- // a key without a value: it gets one
	}
	whole := depth == len(path)
	if depth == 0 && len(root.Entries) == 0 { // nothing but comments
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

// restored takes all lines before and behind a change from the text as it was:
// the library writes some blanks in its own way.
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

// solid is a line without its blanks.
func solid(line string) string { return strings.Join(strings.Fields(line), "") }

// ended ends a text with one line break, unless it is empty.
func ended(src []byte) []byte {
	src = bytes.TrimRight(src, "\n")
	if len(src) == 0 {
		return nil
	}
	return append(slices.Clip(src), '\n')
}

// nested is a mapping that has a value at a path.
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

// replace puts a value in the place of one that is there, and keeps its comment.
func replace(file *ast.File, path []string, value any, write writer) error {
	old, err := pathTo(path).FilterFile(file)
	if err != nil {
		return err
	}
	node, err := nodeOf(value, write)
	if err != nil {
		return err
	}
	if comment := old.GetComment(); comment != nil {
		if err := node.SetComment(comment); err != nil {
			return err
		}
	}
	return pathTo(path).ReplaceWithNode(file, node)
}

// nodeOf is a value as the library has it, written as it would be behind a key.
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

// merge adds to a mapping that is there.
func merge(file *ast.File, path []string, value yamltext.Map, write writer) error {
	text, err := write(value)
	if err != nil {
		return err
	}
	return pathTo(path).MergeFromReader(file, bytes.NewReader(text))
}

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

// ParseAnswer is [Parse] for a value that a model or a person writes by hand: a '#' that text
// follows at once is text, as in "note: Fixes #42" and "colour: #fff", where YAML has a comment.
// Where such a '#' may be either, it is an error. "# " begins a comment.
func ParseAnswer(src []byte, b Bounds) (*Doc, error) { return parse(src, b, true) }

// hideSigns puts a character that the text does not have in the place of each '#' that is text,
// so that the library sees no comment there. The sign is "" if the text has all such characters.
func hideSigns(text string) (hidden, sign string) {
	const first, last = '\ue000', '\uf8ff' // for private use
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
		before := byte('\n') // the last character but white space
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

// isSign reports whether a '#' that YAML takes for the beginning of a comment is text. Behind a
// closing quote or bracket it is not: nothing but a comment can follow there.
func isSign(line string, i int, before byte) bool {
	return line[i] == '#' && i > 0 && strings.IndexByte(" \t[{,", line[i-1]) >= 0 &&
		i+1 < len(line) && strings.IndexByte(" \t\n", line[i+1]) < 0 &&
		strings.IndexByte("\n\"']}", before) < 0
}

// maybeText reports whether the comment that begins here may be meant as text: a '#' that text
// follows at once, where the value before it may continue or is missing.
func (l *lexer) maybeText() bool {
	if l.sign == "" || len(l.out) == 0 || strings.IndexByte(" \t\n", l.text[l.at+1]) >= 0 {
		return false
	}
	last := l.out[len(l.out)-1]
	return last.kind != tokQuoted && last.kind != tokBlock && !last.closes()
}
