// Package graph reads nodes along their references: it finds the refs of a node, walks everything that is
// reachable from some nodes, and expands nodes to values.
package graph

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"

	"github.com/united-workforce/uwf/cas"
)

// Refs returns the hashes referenced by a node: strings where the schema specifies the format ocas_ref,
// without duplicates, in order of appearance. All branches of anyOf, oneOf, if and not count, whether or not
// the value matches: an extra ref costs a read, while a missing one could cost a node. It returns the errors
// of [cas.Schema] and [cas.Node.Value].
func Refs(ctx context.Context, r cas.Reader, n cas.Node) ([]cas.Hash, error) {
	return newRefFinder(r).refs(ctx, n)
}

// refFinder finds refs in many nodes and reads each schema once.
type refFinder struct {
	reader   cas.Reader
	schemas  map[cas.Hash]any // pruned
	patterns map[string]*regexp.Regexp
}

func newRefFinder(r cas.Reader) *refFinder {
	return &refFinder{reader: r, schemas: map[cas.Hash]any{}, patterns: map[string]*regexp.Regexp{}}
}

func (f *refFinder) refs(ctx context.Context, n cas.Node) ([]cas.Hash, error) {
	value, err := n.Value()
	if err != nil {
		return nil, err
	}
	return f.refsIn(ctx, n, value)
}

// refsIn is refs for a node whose value is known. It doesn't modify the value.
func (f *refFinder) refsIn(ctx context.Context, n cas.Node, value any) ([]cas.Hash, error) {
	var refs []cas.Hash
	seen := map[cas.Hash]bool{}
	_, err := f.replaceIn(ctx, n, value, func(h cas.Hash) (any, error) {
		if !seen[h] {
			seen[h] = true
			refs = append(refs, h)
		}
		return string(h), nil
	})
	return refs, err
}

// replace returns a node's payload with every ref replaced by the result of with.
func (f *refFinder) replace(ctx context.Context, n cas.Node, with func(cas.Hash) (any, error)) (any, error) {
	value, err := n.Value()
	if err != nil {
		return nil, err
	}
	return f.replaceIn(ctx, n, value, with)
}

// replaceIn modifies the value.
func (f *refFinder) replaceIn(ctx context.Context, n cas.Node, value any, with func(cas.Hash) (any, error)) (any, error) {
	schema, err := f.schema(ctx, n.Type)
	if err != nil {
		return nil, fmt.Errorf("refs of %s: %w", n.Hash, err)
	}
	p := refPass{finder: f, with: with}
	return p.visit(value, flatten(schema, nil))
}

// schema returns the pruned schema of a type.
func (f *refFinder) schema(ctx context.Context, typ cas.Hash) (any, error) {
	if s, ok := f.schemas[typ]; ok {
		return s, nil
	}
	s, err := cas.Schema(ctx, f.reader, typ)
	if len(f.schemas) == maxSchemas {
		clear(f.schemas)
		clear(f.patterns)
	}
	if err != nil {
		return nil, err
	}
	f.schemas[typ] = cas.RefSchema(s)
	return f.schemas[typ], nil
}

// maxSchemas bounds the cache of schemas: a hostile bundle could have more.
const maxSchemas = 4096

// matches reports whether a key matches a patternProperties pattern. A pattern that doesn't compile here
// counts as matching; see [Refs].
func (f *refFinder) matches(pattern, key string) bool {
	re, ok := f.patterns[pattern]
	if !ok {
		re, _ = regexp.Compile(pattern)
		f.patterns[pattern] = re
	}
	return re == nil || re.MatchString(key)
}

type object = map[string]any

// flatten returns a schema and all schemas that apply to the same value.
func flatten(schema any, into []object) []object {
	s, ok := schema.(object)
	if !ok {
		return into
	}
	into = append(into, s)
	for _, key := range []string{"allOf", "anyOf", "oneOf"} {
		branches, _ := s[key].([]any)
		for _, b := range branches {
			into = flatten(b, into)
		}
	}
	for _, key := range []string{"if", "then", "else", "not"} {
		into = flatten(s[key], into)
	}
	return into
}

// refPass is one pass through one value, in place.
type refPass struct {
	finder *refFinder
	with   func(cas.Hash) (any, error)
}

// visit visits a value under all applicable schemas at once, so that each place is visited once and in order.
func (p refPass) visit(value any, schemas []object) (any, error) {
	if len(schemas) == 0 {
		return value, nil
	}
	switch v := value.(type) {
	case string:
		if h := cas.Hash(v); h.Valid() && slices.ContainsFunc(schemas, isRef) {
			return p.with(h)
		}
	case []any:
		for i := range v {
			out, err := p.visit(v[i], elementSchemas(schemas, i))
			if err != nil {
				return nil, err
			}
			v[i] = out
		}
	case object:
		for _, at := range p.candidates(v, schemas) {
			out, err := p.visit(v[at.key], at.schemas)
			if err != nil {
				return nil, err
			}
			v[at.key] = out
		}
	}
	return value, nil
}

// candidate is a property that can contain refs.
type candidate struct {
	key     string
	schemas []object
}

// candidates returns the candidates of an object, in order.
func (p refPass) candidates(v object, schemas []object) []candidate {
	var found []candidate
	for key := range v {
		if subs := p.propertySchemas(schemas, key); len(subs) > 0 {
			found = append(found, candidate{key, subs})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return inOrder(a.key, b.key) })
	return found
}

func isRef(s object) bool { return s["format"] != nil }

// elementSchemas returns the schemas of the i-th element. prefixItems isn't in our dialect, but in the
// original's.
func elementSchemas(schemas []object, i int) []object {
	var out []object
	for _, s := range schemas {
		out = flatten(s["items"], out)
		out = flatten(s["contains"], out)
		if prefix, ok := s["prefixItems"].([]any); ok && i < len(prefix) {
			out = flatten(prefix[i], out)
		}
	}
	return out
}

func (p refPass) propertySchemas(schemas []object, key string) []object {
	var out []object
	for _, s := range schemas {
		named := false
		if properties, ok := s["properties"].(object); ok {
			if sub, ok := properties[key]; ok {
				named = true
				out = flatten(sub, out)
			}
		}
		patterns, _ := s["patternProperties"].(object)
		for pattern, sub := range patterns {
			if p.finder.matches(pattern, key) {
				named = true
				out = flatten(sub, out)
			}
		}
		if !named {
			out = flatten(s["additionalProperties"], out)
		}
	}
	return out
}

// inOrder compares keys in encoding order.
func inOrder(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Inspector inspects many nodes: it returns their refs and validates them against their types. It reads and
// compiles each schema once. It is not safe for concurrent use.
type Inspector struct {
	verifier *cas.Verifier
	finder   *refFinder
}

// NewInspector returns an Inspector for the nodes of r.
func NewInspector(r cas.Reader) *Inspector {
	return &Inspector{verifier: cas.NewVerifier(r), finder: newRefFinder(r)}
}

// Refs is like the function [Refs].
func (i *Inspector) Refs(ctx context.Context, n cas.Node) ([]cas.Hash, error) {
	return i.finder.refs(ctx, n)
}

// Inspect checks a node returned by Get, as [cas.Verify] does, and returns its refs. For a node that doesn't
// match its type it returns both the refs and the error, otherwise errors only.
func (i *Inspector) Inspect(ctx context.Context, n cas.Node) ([]cas.Hash, error) {
	value, err := cas.Decode(n.Payload)
	if err != nil {
		return nil, &cas.CorruptError{Hash: n.Hash, Reason: err.Error()}
	}
	refs, err := i.finder.refsIn(ctx, n, value)
	if err != nil {
		return nil, err
	}
	return refs, i.verifier.VerifyValue(ctx, n, value)
}
