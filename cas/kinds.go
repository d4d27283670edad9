package cas

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// maxSchemas bounds caches of schemas. Our stores never reach it; a hostile bundle could.
const maxSchemas = 4096

// Kinds provides the schema nodes of our kinds, and the meta-schema, under one hash function. It is safe for
// concurrent use.
type Kinds struct {
	algorithm Algorithm
	builtin   func() builtins

	mu    sync.Mutex
	nodes map[protocol.Type]Node // schemas in this program that were used; the zero type is the meta-schema
	read  map[Hash]protocol.Type // types whose schemas were read; zero for types that aren't ours
}

// builtins are the hashes of the schemas in this program. The zero type is the meta-schema.
type builtins struct {
	hashes map[protocol.Type]Hash
	types  map[Hash]protocol.Type
}

// NewKinds returns the kinds under a hash function.
func NewKinds(a Algorithm) *Kinds {
	k := &Kinds{algorithm: a, nodes: map[protocol.Type]Node{}, read: map[Hash]protocol.Type{}}
	k.builtin = sync.OnceValue(func() builtins {
		b := builtins{map[protocol.Type]Hash{}, map[Hash]protocol.Type{}}
		for line := range strings.Lines(schemaHashes) {
			f := strings.Fields(line)
			h, t := Hash(f[1]), protocol.Type{}
			if known, ok := protocol.ParseType(f[0]); ok {
				t = known
			}
			if a == XXH64 {
				h = Hash(f[2])
			}
			b.hashes[t], b.types[h] = h, t
		}
		return b
	})
	return k
}

// Of returns the kind of the nodes of a type, "" for other types, and its version; 0 is the original's form.
// It recognizes the type of a newer version by its schema, which it reads from r. It returns the errors of
// [Schema], for a type unknown to this program.
//
// Use only this method to determine a node's kind: comparing the types directly would miss later versions.
func (k *Kinds) Of(ctx context.Context, r Reader, typ Hash) (protocol.Kind, int, error) {
	if t, known := k.remembered(typ); known {
		return t.Kind, t.Version, nil
	}
	schema, err := Schema(ctx, r, typ)
	if err != nil {
		return "", 0, err
	}
	t, ok := k.newer(schema)
	if !ok && k.algorithm == XXH64 {
		t = protocol.Type{Kind: originalKind(schema)}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if len(k.read) == maxSchemas {
		clear(k.read)
	}
	k.read[typ] = t
	return t.Kind, t.Version, nil
}

func (k *Kinds) remembered(typ Hash) (protocol.Type, bool) {
	if t, ok := k.builtin().types[typ]; ok {
		return t, true
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	t, ok := k.read[typ]
	return t, ok
}

// newer reports whether a schema belongs to a version that this program doesn't know. Its title shows that,
// and it must still contain every ref of the first version: otherwise the schema would not declare the links
// of a chain as refs, and the collector would delete their targets.
func (k *Kinds) newer(schema any) (protocol.Type, bool) {
	s, _ := schema.(object)
	title, _ := s["title"].(string)
	name, titled := strings.CutPrefix(title, protocol.TitlePrefix)
	t, ok := protocol.ParseType(name)
	if !titled || !ok || t.Known() {
		return protocol.Type{}, false
	}
	value, err := k.Schema(protocol.Type{Kind: t.Kind, Version: 1}).Value()
	first, _ := value.(object)
	if err != nil || s["type"] != first["type"] {
		return protocol.Type{}, false
	}
	fields, _ := first["properties"].(object)
	properties, _ := s["properties"].(object)
	for name, field := range fields {
		if now, ok := properties[name]; !ok || !keeps(RefSchema(field), RefSchema(now)) {
			return protocol.Type{}, false
		}
	}
	return t, true
}

// keeps reports whether a pruned schema finds every ref that another one finds.
func keeps(first, now any) bool {
	switch first := first.(type) {
	case nil:
		return true
	case object:
		now, ok := now.(object)
		for key, value := range first {
			ok = ok && keeps(value, now[key])
		}
		return ok
	case []any:
		now, ok := now.([]any)
		ok = ok && len(now) >= len(first)
		for i := 0; ok && i < len(first); i++ {
			ok = keeps(first[i], now[i])
		}
		return ok
	}
	return reflect.DeepEqual(first, now)
}

// Foundation returns the nodes that every store starts with: the meta-schema, and the schemas of
// [protocol.Foundation].
func (k *Kinds) Foundation() []Node {
	nodes := []Node{k.Meta()}
	for _, t := range protocol.Foundation() {
		nodes = append(nodes, k.Schema(t))
	}
	return nodes
}

// InFoundation reports whether a node is part of the foundation.
func (k *Kinds) InFoundation(h Hash) bool {
	t, _ := k.remembered(h)
	return h == k.MetaHash() || t.Known() && slices.Contains(protocol.Foundation(), t)
}

// Builtin returns the node of a schema built into this program, whether or not a store has it; false if h
// isn't one.
func (k *Kinds) Builtin(h Hash) (Node, bool) {
	if h == k.MetaHash() {
		return k.Meta(), true
	}
	t, _ := k.remembered(h)
	if !t.Known() {
		return Node{}, false
	}
	return k.Schema(t), true
}

// Hash returns the hash of the schema of a kind's first version: the type of nodes that use no newer feature.
func (k *Kinds) Hash(kind protocol.Kind) Hash {
	return k.Schema(protocol.Type{Kind: kind, Version: 1}).Hash
}

// MetaHash returns the hash of the meta-schema: the type of schema nodes.
func (k *Kinds) MetaHash() Hash { return k.builtin().hashes[protocol.Type{}] }

// Schema returns the node of a type's schema, without a timestamp. It panics for a type that isn't in
// [protocol.Types], which is a programming error.
func (k *Kinds) Schema(t protocol.Type) Node {
	k.mu.Lock()
	defer k.mu.Unlock()
	n, ok := k.nodes[t]
	if !ok {
		name := "meta"
		if t != (protocol.Type{}) {
			name = t.String()
		}
		n = Node{Hash: k.builtin().hashes[t], Type: k.MetaHash(), Payload: schemaPayload(name)}
		k.nodes[t] = n
	}
	return n
}

// Meta returns the node of the meta-schema, without a timestamp.
func (k *Kinds) Meta() Node { return k.Schema(protocol.Type{}) }

// schemaFiles contains the schemas of package protocol as encoded by [Encode], and schemaHashes a line for each: its
// name and its hashes under [XXH3] and [XXH64]. Parsing and encoding JSON would cost every process more than all its
// other work on the store. A test keeps them equal.
//
//go:embed kinds/*.cbor
var schemaFiles embed.FS

//go:embed kinds/hashes
var schemaHashes string

//go:generate go test -run TestSchemaFiles -update .

// schemaPayload panics for a type that isn't in protocol.Types, which is a programming error.
func schemaPayload(name string) []byte {
	payload, err := schemaFiles.ReadFile("kinds/" + name + ".cbor")
	if err != nil {
		panic(fmt.Sprintf("cas: no schema for %q", name))
	}
	return payload
}

// Schema returns the JSON Schema of a type as a JSON value. It returns the errors of Get, and a
// [*CorruptError] if typ isn't a schema node.
func Schema(ctx context.Context, r Reader, typ Hash) (any, error) {
	n, err := getSchema(ctx, r, typ)
	if err != nil {
		return nil, err
	}
	return n.Value()
}

// getSchema returns the node of a type.
func getSchema(ctx context.Context, r Reader, typ Hash) (Node, error) {
	n, err := r.Get(ctx, typ)
	if err != nil {
		return Node{}, fmt.Errorf("schema: %w", err)
	}
	if n.Type != r.Kinds().MetaHash() && n.Type != n.Hash {
		return Node{}, &CorruptError{Hash: typ, Reason: "it is used as a type but is not a schema"}
	}
	return n, nil
}

type object = map[string]any

// RefSchema returns the parts of a schema that can contain refs, so that most of a node isn't searched; a
// schema of a ref has a format, and no other one has. A schema without refs is nil instead of left out, because
// its property still isn't an additional one.
func RefSchema(schema any) any {
	s, ok := schema.(object)
	if !ok {
		return nil
	}
	out, leads := object{}, s["format"] == "ocas_ref" || s["format"] == "cas_ref"
	if leads {
		out["format"] = "ocas_ref"
	}
	for key, value := range s {
		var some bool
		switch key {
		case "properties", "patternProperties":
			out[key], some = refSchemas(value)
		case "allOf", "anyOf", "oneOf", "prefixItems":
			out[key], some = refSchemaList(value)
		case "if", "then", "else", "not", "items", "contains", "additionalProperties":
			out[key] = RefSchema(value)
			some = out[key] != nil
		}
		leads = leads || some
	}
	if !leads {
		return nil
	}
	return out
}

func refSchemas(schemas any) (out object, leads bool) {
	out = object{}
	named, _ := schemas.(object)
	for name, s := range named {
		out[name] = RefSchema(s)
		leads = leads || out[name] != nil
	}
	return out, leads
}

func refSchemaList(schemas any) (out []any, leads bool) {
	list, _ := schemas.([]any)
	for _, s := range list {
		out = append(out, RefSchema(s))
		leads = leads || out[len(out)-1] != nil
	}
	return out, leads
}

// compile checks and compiles the payload of a schema node. Its error is a [*SchemaError] against the
// meta-schema, whose hash is meta.
func compile(meta Hash, payload []byte) (*jsonschema.Schema, error) {
	schema, err := Decode(payload)
	if err != nil {
		return nil, err
	}
	compiled, err := jsonschema.Compile(schema)
	if invalid, ok := errors.AsType[*jsonschema.InvalidError](err); ok {
		return nil, &SchemaError{Type: meta, Problems: invalid.Problems}
	}
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return compiled, nil
}

// maxCandidates bounds the list in an [AmbiguousError], which people read to choose from.
const maxCandidates = 16

// Resolve returns the only node whose hash starts with prefix, as typed by a person. Errors: [ErrNotFound],
// [*AmbiguousError], the errors of [Store].All.
func Resolve(ctx context.Context, s Store, prefix string) (Hash, error) {
	if prefix == "" {
		return "", fmt.Errorf("%w: the hash is empty", ErrNotFound)
	}
	folded := protocol.FoldCrockford(prefix)
	if h := Hash(folded); h.Valid() {
		return resolveWhole(ctx, s, h)
	}
	var found []Hash
	for h, err := range s.All(ctx, folded) {
		if err != nil {
			return "", fmt.Errorf("resolve %s: %w", prefix, err)
		}
		if found = append(found, h); len(found) == maxCandidates {
			break
		}
	}
	switch len(found) {
	case 0:
		return "", fmt.Errorf("%w: no hash starts with %q", ErrNotFound, prefix)
	case 1:
		return found[0], nil
	}
	return "", &AmbiguousError{Prefix: prefix, Candidates: found}
}

func resolveWhole(ctx context.Context, s Store, h Hash) (Hash, error) {
	ok, err := s.Has(ctx, h)
	if err != nil {
		return "", err
	}
	if !ok {
		return "", fmt.Errorf("%w: %s", ErrNotFound, h)
	}
	return h, nil
}
