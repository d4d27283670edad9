package yamldoc

import (
	"bytes"
	"errors"
	"fmt"
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
