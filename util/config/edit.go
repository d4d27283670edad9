package config

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/env"
	"github.com/united-workforce/uwf/util/yamldoc"
	"github.com/united-workforce/uwf/util/yamltext"
)

// Set changes one value in the text of a config.yaml; comments, order and the
// rest stay as they are. path is only named in errors.
//
// A value that no config can have is refused (*protocol.Error, code invalid); what
// merely is missing yet beside it is returned as problems, so that a provider or a
// model can be written field by field.
func Set(src []byte, path string, k Key, value any, e env.Env) (text []byte, missing []protocol.Problem, err error) {
	r := report{path: path, src: src}
	before, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return nil, nil, r.err()
	}
	if n := before.Root; n.Kind == yamldoc.Sequence || n.Kind == yamldoc.Scalar && n.Scalar != nil {
		r.add(n.Pos, "", "the config must be a mapping")
		return nil, nil, r.err()
	}
	want, err := changed(before.Root.Value(), k.Path, value)
	if err != nil {
		return nil, nil, err
	}
	if text, err = edited(src, before.Root, k.Path, value); err != nil {
		return nil, nil, err
	}
	after, err := yamldoc.Parse(text, yamldoc.Bounds{})
	if err != nil || !reflect.DeepEqual(after.Root.Value(), want) {
		return nil, nil, &protocol.Error{
			Code: protocol.CodeFailed, Message: fmt.Sprintf("%s cannot be changed without touching something else in %s", k, path),
			Hints: []string{"change it with an editor; uwf config list shows what is in force"},
		}
	}
	missing, err = judge(src, text, path, e)
	return text, missing, err
}

// changed is the value of a config with a new value at a path.
func changed(root any, path []string, value any) (any, error) {
	if len(path) == 0 {
		return value, nil
	}
	m, ok := root.(map[string]any)
	switch {
	case root == nil:
		m = map[string]any{}
	case !ok:
		return nil, &protocol.Error{Code: protocol.CodeInvalid, Message: fmt.Sprintf("%q cannot be set: what should hold it is no mapping", path[0])}
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
func edited(src []byte, root *yamldoc.Node, path []string, value any) ([]byte, error) {
	depth, at := 0, root
	for depth < len(path) && at.Kind == yamldoc.Mapping && at.Get(path[depth]) != nil {
		at = at.Get(path[depth])
		depth++
	}
	if depth < len(path) && at.Kind == yamldoc.Scalar && depth > 0 {
		depth-- // a key without a value: it gets one
	}
	whole := depth == len(path)
	if depth == 0 && len(root.Entries) == 0 { // nothing but comments
		if root.Kind == yamldoc.Mapping {
			src = bytes.Replace(src, []byte("{}"), nil, 1)
		}
		text, err := yamltext.Marshal(nested(path, value))
		return append(ended(src), text...), err
	}
	file, err := parser.ParseBytes(src, parser.ParseComments)
	if err != nil {
		return nil, fmt.Errorf("edit config: %w", err)
	}
	if whole {
		err = replace(file, path, value)
	} else if at.Kind == yamldoc.Scalar {
		err = replace(file, path[:depth+1], nestedValue(path[depth+1:], value))
	} else {
		err = merge(file, path[:depth], nested(path[depth:], value))
	}
	if err != nil {
		return nil, fmt.Errorf("edit config: %w", err)
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

func at(path []string) *yaml.Path {
	b := (&yaml.PathBuilder{}).Root()
	for _, part := range path {
		b = b.Child(part)
	}
	return b.Build()
}

// replace puts a value in the place of one that is there, and keeps its comment.
func replace(file *ast.File, path []string, value any) error {
	old, err := at(path).FilterFile(file)
	if err != nil {
		return err
	}
	node, err := nodeOf(value)
	if err != nil {
		return err
	}
	if comment := old.GetComment(); comment != nil {
		if err := node.SetComment(comment); err != nil {
			return err
		}
	}
	return at(path).ReplaceWithNode(file, node)
}

// nodeOf is a value as the library has it, written as it would be behind a key.
func nodeOf(value any) (ast.Node, error) {
	const key = "key"
	text, err := yamltext.Marshal(yamltext.Map{{Key: key, Value: value}})
	if err != nil {
		return nil, err
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, err
	}
	return at([]string{key}).FilterFile(file)
}

// merge adds to a mapping that is there.
func merge(file *ast.File, path []string, value yamltext.Map) error {
	text, err := yamltext.Marshal(value)
	if err != nil {
		return err
	}
	return at(path).MergeFromReader(file, bytes.NewReader(text))
}

// judge holds a changed config against the rules. What was wrong before is not
// held against the change.
func judge(before, after []byte, path string, e env.Env) (missing []protocol.Problem, err error) {
	known := map[string]bool{}
	for _, p := range problems(before, path, e) {
		known[p.Message] = true
	}
	var wrong []protocol.Problem
	for _, p := range problems(after, path, e) {
		switch {
		case known[p.Message]:
		case strings.HasSuffix(p.Message, missingWords):
			missing = append(missing, p)
		default:
			wrong = append(wrong, p)
		}
	}
	if len(wrong) == 0 {
		return missing, nil
	}
	bad := &protocol.Error{Code: protocol.CodeInvalid, Message: wrong[0].Message, Err: &InvalidError{Problems: wrong}}
	if wrong[0].Remedy != "" {
		bad.Hints = []string{wrong[0].Remedy}
	}
	return nil, bad
}

// problems are all that is wrong in a config.
func problems(src []byte, path string, e env.Env) []protocol.Problem {
	r := report{path: path, src: src}
	doc, err := yamldoc.Parse(src, yamldoc.Bounds{})
	if err != nil {
		r.addYAML(err)
		return r.problems
	}
	var c protocol.Config
	d := decoder{report: &r, env: e}
	d.decode(doc.Root, &c)
	check(&r, doc.Root, c)
	return r.problems
}
