// Package graph reads nodes along their references: it finds the refs of a node, walks everything that is
// reachable from some nodes, and expands nodes to values.
package graph

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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
	schemas  map[cas.Hash]any // by type, reduced by [cas.RefSchema]
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

// replaceIn returns a node's value with every ref replaced by the result of with. It modifies the value.
func (f *refFinder) replaceIn(ctx context.Context, n cas.Node, value any, with func(cas.Hash) (any, error)) (any, error) {
	schema, err := f.schema(ctx, n.Type)
	if err != nil {
		return nil, fmt.Errorf("refs of %s: %w", n.Hash, err)
	}
	p := refPass{finder: f, with: with}
	return p.visit(value, flatten(schema, nil))
}

// schema returns the parts of a type's schema that can contain refs.
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

// matches reports whether a key matches a patternProperties pattern. A pattern that doesn't compile in Go
// matches every key: an extra ref is harmless, as [Refs] explains.
func (f *refFinder) matches(pattern, key string) bool {
	re, ok := f.patterns[pattern]
	if !ok {
		re, _ = regexp.Compile(pattern)
		f.patterns[pattern] = re
	}
	return re == nil || re.MatchString(key)
}

type object = map[string]any

// flatten appends a schema and its branches, which apply to the same value, to into.
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

// refPass is one pass through one value. It replaces each ref in place.
type refPass struct {
	finder *refFinder
	with   func(cas.Hash) (any, error) // returns the replacement
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

// candidates returns the candidates of an object, in the order of its encoding.
func (p refPass) candidates(v object, schemas []object) []candidate {
	var found []candidate
	for key := range v {
		if subs := p.propertySchemas(schemas, key); len(subs) > 0 {
			found = append(found, candidate{key, subs})
		}
	}
	slices.SortFunc(found, func(a, b candidate) int { return compareKeys(a.key, b.key) })
	return found
}

func isRef(s object) bool { return s["format"] != nil } // [cas.RefSchema] keeps no other formats

// elementSchemas returns the schemas of the i-th element. prefixItems isn't in uwf's dialect of JSON Schema,
// but stores of the original uwf can have it.
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

// compareKeys compares keys in the order of the encoding: the shorter one first.
func compareKeys(a, b string) int { return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) }

// Inspector finds the refs of many nodes and validates the nodes against their types. It reads and compiles
// each schema once. It is not safe for concurrent use.
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

// WalkOptions configures a walk. FollowTypes also visits the schema of each node.
type WalkOptions struct{ FollowTypes bool }

// Walk yields every node reachable from the roots once, breadth first. It yields an unreadable node with only
// its hash and the error of Get, and a node whose refs can't be determined completely, with the error of
// [Refs]. It continues after both. It stops when ctx is done and then yields its error last.
func Walk(ctx context.Context, r cas.Reader, roots []cas.Hash, o WalkOptions) iter.Seq2[cas.Node, error] {
	return func(yield func(cas.Node, error) bool) {
		finder, queue, seen := newRefFinder(r), []cas.Hash{}, map[cas.Hash]bool{}
		enqueue := func(hashes ...cas.Hash) {
			for _, h := range hashes {
				if !seen[h] {
					seen[h], queue = true, append(queue, h)
				}
			}
		}
		for enqueue(roots...); len(queue) > 0; queue = queue[1:] {
			if err := ctx.Err(); err != nil {
				yield(cas.Node{}, err)
				return
			}
			n, err := r.Get(ctx, queue[0])
			if err != nil {
				n = cas.Node{Hash: queue[0]}
			} else {
				var refs []cas.Hash
				refs, err = finder.refs(ctx, n)
				enqueue(refs...)
				if o.FollowTypes {
					enqueue(n.Type)
				}
			}
			if !yield(n, err) {
				return
			}
		}
	}
}

// Visited is a node visited by [BottomUp].
type Visited struct {
	Node cas.Node
	// Needs lists its type and refs, as the function [Needs] does. All of them were visited before.
	Needs []cas.Hash
	// Tombstone is set if the node was redacted. Then Node has only its hash, and Needs is empty.
	Tombstone *cas.Tombstone
}

// BottomUpOptions configures a walk. The zero value works.
type BottomUpOptions struct {
	// Known reports whether to skip a node and everything below it, because the caller has it; nil skips none.
	Known func(cas.Hash) (bool, error)
	// Verify means that each node is checked against its type.
	Verify bool
}

// VisitError identifies the node at which a [BottomUp] walk failed.
type VisitError struct {
	Hash cas.Hash
	By   cas.Hash // node that needs it; "" for a root
	Err  error
}

func (e *VisitError) Error() string {
	if e.By == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("node %s needs %s: %v", e.By, e.Hash, e.Err)
}

func (e *VisitError) Unwrap() error { return e.Err }

// BottomUp visits every node reachable from the roots once, types included, each after everything it needs:
// depth first, with needs in order. The same roots in the same order give the same walk. It stops at the
// first error: a [*VisitError] with an error of Get, [Refs] or [cas.Verify], or with a [*cas.CorruptError] for a
// cycle, which requires constructed hashes; errors of Known, visit and ctx are returned unchanged.
//
// It keeps its own stack, because chains are as long as threads, and only a few payloads on it, because
// together they could be a whole thread.
func BottomUp(ctx context.Context, r cas.Reader, roots []cas.Hash, o BottomUpOptions, visit func(Visited) error) error {
	w := climber{reader: r, inspector: NewInspector(r), options: o, state: map[cas.Hash]climbState{}, visit: visit}
	for _, root := range roots {
		if err := w.enter(ctx, root); err != nil {
			return err
		}
		for len(w.stack) > 0 {
			if err := ctx.Err(); err != nil {
				return err
			}
			top := &w.stack[len(w.stack)-1]
			step := w.leave
			if top.next < len(top.needs) {
				need := top.needs[top.next]
				top.next++
				step = func(ctx context.Context) error { return w.enter(ctx, need) }
			}
			if err := step(ctx); err != nil {
				return err
			}
		}
	}
	return nil
}

// climber is the state of a [BottomUp] walk.
type climber struct {
	reader    cas.Reader
	inspector *Inspector
	options   BottomUpOptions
	state     map[cas.Hash]climbState
	stack     []opened
	kept      int // bytes of payloads below the top of the stack
	visit     func(Visited) error
}

// climbKeeps bounds the payloads on the stack, in bytes. Others are read again when the walk leaves their nodes.
const climbKeeps = 16 << 20

type climbState byte

const (
	climbOpen climbState = iota + 1 // waiting for what it needs
	climbDone
)

// opened is a node on the stack. Its payload can be dropped while others are above it.
type opened struct {
	node  cas.Node
	needs []cas.Hash
	next  int // index into needs
}

// enter opens a node unless it is known or already visited.
func (w *climber) enter(ctx context.Context, h cas.Hash) error {
	switch w.state[h] {
	case climbDone:
		return nil
	case climbOpen:
		return w.failed(h, &cas.CorruptError{Hash: h, Reason: "it refers to itself"})
	}
	if w.options.Known != nil {
		known, err := w.options.Known(h)
		if err != nil {
			return err
		}
		if known {
			w.state[h] = climbDone
			return nil
		}
	}
	n, err := w.reader.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		w.state[h] = climbDone
		return w.visit(Visited{Node: cas.Node{Hash: h}, Tombstone: &redacted.Tombstone})
	}
	if err != nil {
		return w.failed(h, err)
	}
	needs, err := w.needs(ctx, n)
	if err != nil {
		return w.failed(h, err)
	}
	if len(w.stack) > 0 {
		below := &w.stack[len(w.stack)-1].node
		if w.kept+len(below.Payload) > climbKeeps {
			below.Payload = nil
		}
		w.kept += len(below.Payload)
	}
	w.state[h] = climbOpen
	w.stack = append(w.stack, opened{node: n, needs: needs})
	return nil
}

func (w *climber) failed(h cas.Hash, err error) error {
	out := &VisitError{Hash: h, Err: err}
	if len(w.stack) > 0 {
		out.By = w.stack[len(w.stack)-1].node.Hash
	}
	return out
}

func (w *climber) needs(ctx context.Context, n cas.Node) ([]cas.Hash, error) {
	look := w.inspector.Refs
	if w.options.Verify {
		look = w.inspector.Inspect
	}
	refs, err := look(ctx, n)
	if err != nil {
		return nil, err
	}
	return Needs(n, refs), nil
}

// Needs returns what a node with these refs needs: its type, unless it is its own type, then the other refs.
func Needs(n cas.Node, refs []cas.Hash) []cas.Hash {
	if n.Type == n.Hash {
		return refs
	}
	needs := make([]cas.Hash, 0, len(refs)+1)
	needs = append(needs, n.Type)
	for _, r := range refs {
		if r != n.Type {
			needs = append(needs, r)
		}
	}
	return needs
}

// leave visits the top node, whose needs have all been visited.
func (w *climber) leave(ctx context.Context) error {
	last := w.stack[len(w.stack)-1]
	w.stack = w.stack[:len(w.stack)-1]
	if len(w.stack) > 0 {
		w.kept -= len(w.stack[len(w.stack)-1].node.Payload)
	}
	if last.node.Payload == nil {
		n, err := w.reader.Get(ctx, last.node.Hash)
		if err != nil {
			return w.failed(last.node.Hash, err)
		}
		last.node = n
	}
	w.state[last.node.Hash] = climbDone
	return w.visit(Visited{Node: last.node, Needs: last.needs})
}

// Expand returns a node's payload with every ref replaced by its target. A ref that closes a cycle stays a hash. A
// target referenced twice is shared rather than copied, so don't modify the result. A redacted node becomes
// [cas.RedactedError.Value]. It returns the errors of Get and [Refs], for any of the nodes.
func Expand(ctx context.Context, r cas.Reader, h cas.Hash) (any, error) {
	e := expander{finder: newRefFinder(r), done: map[cas.Hash]any{}}
	return e.expand(ctx, h)
}

type expander struct {
	finder *refFinder
	done   map[cas.Hash]any // expanded values; the hash itself while its node is being expanded
}

func (e *expander) expand(ctx context.Context, h cas.Hash) (any, error) {
	if v, ok := e.done[h]; ok {
		return v, nil
	}
	n, err := e.finder.reader.Get(ctx, h)
	if redacted, ok := cas.AsRedacted(err); ok {
		return redacted.Value(), nil
	}
	if err != nil {
		return nil, err
	}
	value, err := n.Value()
	if err != nil {
		return nil, err
	}
	e.done[h] = string(h)
	v, err := e.finder.replaceIn(ctx, n, value, func(ref cas.Hash) (any, error) { return e.expand(ctx, ref) })
	e.done[h] = v
	return v, err
}
