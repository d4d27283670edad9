package cas

import (
	"cmp"
	"context"
	"fmt"
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
	schemas  map[Hash]any // pruned
	patterns map[string]*regexp.Regexp
}

func newRefFinder(r Reader) *refFinder {
	return &refFinder{reader: r, schemas: map[Hash]any{}, patterns: map[string]*regexp.Regexp{}}
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
	p := refPass{finder: f, with: with}
	return p.visit(value, flatten(schema, nil))
}

// schema is the schema of a type, pruned.
func (f *refFinder) schema(ctx context.Context, typ Hash) (any, error) {
	if s, ok := f.schemas[typ]; ok {
		return s, nil
	}
	s, err := Schema(ctx, f.reader, typ)
	if len(f.schemas) == maxSchemas {
		clear(f.schemas)
		clear(f.patterns)
	}
	if err != nil {
		return nil, err
	}
	f.schemas[typ] = prune(s)
	return f.schemas[typ], nil
}

// maxSchemas bounds how many schemas are remembered. No store of ours comes near
// it; a bundle that somebody has made to fill the memory may.
const maxSchemas = 4096

// prune takes out of a schema what does not lead to a ref, because most of most
// nodes need not be searched. In the place of a schema that leads to none is nil:
// a property that has one is still not an additional one.
func prune(schema any) any {
	s, ok := schema.(object)
	if !ok {
		return nil
	}
	out, leads := object{}, isRef(s)
	for key, value := range s {
		var some bool
		switch key {
		case "format":
			out[key] = value
		case "properties", "patternProperties":
			out[key], some = pruneEach(value)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			out[key], some = pruneList(value)
		case "if", "then", "else", "not", "items", "contains", "additionalProperties":
			out[key] = prune(value)
			some = out[key] != nil
		}
		leads = leads || some
	}
	if !leads {
		return nil
	}
	return out
}

func pruneEach(schemas any) (out object, leads bool) {
	out = object{}
	named, _ := schemas.(object)
	for name, s := range named {
		out[name] = prune(s)
		leads = leads || out[name] != nil
	}
	return out, leads
}

func pruneList(schemas any) (out []any, leads bool) {
	list, _ := schemas.([]any)
	for _, s := range list {
		out = append(out, prune(s))
		leads = leads || out[len(out)-1] != nil
	}
	return out, leads
}

// matches reports whether a key is one of a patternProperties. A pattern that
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

// candidate is a property that may lead to refs.
type candidate struct {
	key     string
	schemas []object
}

// candidates are those of an object, in order.
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

// inOrder compares keys as they stand in an encoding.
func inOrder(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }
