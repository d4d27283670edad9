package cas

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
)

// Refs returns the hashes that a node refers to: strings at places whose schema
// says format ocas_ref, without duplicates, in order of appearance. Of anyOf,
// oneOf, if and not every branch counts, whether or not the value satisfies it:
// a ref too many costs a read, a ref too few would cost a node. Errors: those
// of [Schema] and [Node.Value].
func Refs(ctx context.Context, r Reader, n Node) ([]Hash, error) {
	return newRefFinder(r).refs(ctx, n)
}

// refFinder finds refs in many nodes and reads each schema once.
type refFinder struct {
	reader   Reader
	schemas  map[Hash]any
	refless  map[Hash]bool // of schemas: nothing in them is a ref
	patterns map[string]*regexp.Regexp
}

func newRefFinder(r Reader) *refFinder {
	return &refFinder{reader: r, schemas: map[Hash]any{}, refless: map[Hash]bool{}, patterns: map[string]*regexp.Regexp{}}
}

func (f *refFinder) refs(ctx context.Context, n Node) ([]Hash, error) {
	value, err := n.Value()
	if err != nil {
		return nil, err
	}
	return f.refsIn(ctx, n, value)
}

// refsIn is refs for a node whose value is at hand. It leaves the value as it is.
func (f *refFinder) refsIn(ctx context.Context, n Node, value any) ([]Hash, error) {
	var refs []Hash
	seen := map[Hash]bool{}
	_, err := f.replaceIn(ctx, n, value, func(h Hash) (any, error) {
		if !seen[h] {
			seen[h] = true
			refs = append(refs, h)
		}
		return string(h), nil
	})
	return refs, err
}

// replace returns a node's payload with every ref replaced by what with
// returns for it.
func (f *refFinder) replace(ctx context.Context, n Node, with func(Hash) (any, error)) (any, error) {
	value, err := n.Value()
	if err != nil {
		return nil, err
	}
	return f.replaceIn(ctx, n, value, with)
}

// replaceIn changes the value.
func (f *refFinder) replaceIn(ctx context.Context, n Node, value any, with func(Hash) (any, error)) (any, error) {
	schema, err := f.schema(ctx, n.Type)
	if err != nil {
		return nil, fmt.Errorf("refs of %s: %w", n.Hash, err)
	}
	if f.refless[n.Type] {
		return value, nil
	}
	p := refPass{finder: f, with: with}
	return p.visit(value, flatten(schema, nil))
}

func (f *refFinder) schema(ctx context.Context, typ Hash) (any, error) {
	if s, ok := f.schemas[typ]; ok {
		return s, nil
	}
	s, err := Schema(ctx, f.reader, typ)
	if len(f.schemas) == maxSchemas {
		clear(f.schemas)
		clear(f.refless)
		clear(f.patterns)
	}
	if err == nil {
		f.schemas[typ], f.refless[typ] = s, !speaksOfRefs(s)
	}
	return s, err
}

// maxSchemas bounds how many schemas are remembered. No store of ours comes near
// it; a bundle that somebody has made to fill the memory may.
const maxSchemas = 4096

// speaksOfRefs tells whether a schema says anywhere that something is a ref. Most
// nodes have types that do not, and need not be searched.
func speaksOfRefs(schema any) bool {
	switch s := schema.(type) {
	case object:
		if isRef(s) {
			return true
		}
		for _, sub := range s {
			if speaksOfRefs(sub) {
				return true
			}
		}
	case []any:
		return slices.ContainsFunc(s, speaksOfRefs)
	}
	return false
}

// matches tells whether a key is one of a patternProperties. A pattern that
// does not compile here counts as matching: see [Refs].
func (f *refFinder) matches(pattern, key string) bool {
	re, ok := f.patterns[pattern]
	if !ok {
		re, _ = regexp.Compile(pattern)
		f.patterns[pattern] = re
	}
	return re == nil || re.MatchString(key)
}

type object = map[string]any

// flatten lists a schema and all schemas that apply to the same value.
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

// refPass is one walk through one value, in place.
type refPass struct {
	finder *refFinder
	with   func(Hash) (any, error)
}

// visit walks a value under all the schemas that apply to it at once, so that
// each place is seen once and in order.
func (p refPass) visit(value any, schemas []object) (any, error) {
	if len(schemas) == 0 {
		return value, nil
	}
	switch v := value.(type) {
	case string:
		if h := Hash(v); h.Valid() && slices.ContainsFunc(schemas, isRef) {
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
		for _, key := range keysInOrder(v) {
			out, err := p.visit(v[key], p.propertySchemas(schemas, key))
			if err != nil {
				return nil, err
			}
			v[key] = out
		}
	}
	return value, nil
}

func isRef(s object) bool { return s["format"] == "ocas_ref" || s["format"] == "cas_ref" }

// elementSchemas are those of the i-th element. prefixItems is not in our
// dialect, but in the original's.
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
		for _, pattern := range keysInOrder(patterns) {
			if p.finder.matches(pattern, key) {
				named = true
				out = flatten(patterns[pattern], out)
			}
		}
		if !named {
			out = flatten(s["additionalProperties"], out)
		}
	}
	return out
}

// keysInOrder are the keys of an object as they stand in its encoding.
func keysInOrder(m object) []string {
	return slices.SortedFunc(maps.Keys(m), func(a, b string) int {
		return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b))
	})
}
