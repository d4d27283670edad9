package cas

import (
	"cmp"
	"context"
	"fmt"
	"iter"
	"regexp"
	"slices"
)

// WalkOptions say where a walk goes: FollowTypes also visits the schema of each node.
type WalkOptions struct{ FollowTypes bool }

// Walk yields every node reachable from the roots once, breadth first. A node
// that cannot be read is yielded with its hash alone and the error of Get; one
// whose refs cannot be found is yielded whole, with the error of [Refs]. The
// walk goes on after both. It ends with ctx, whose error it yields last.
func Walk(ctx context.Context, r Reader, roots []Hash, o WalkOptions) iter.Seq2[Node, error] {
	return func(yield func(Node, error) bool) {
		w := walker{finder: newRefFinder(r), seen: map[Hash]bool{}}
		w.enqueue(roots...)
		for len(w.queue) > 0 {
			if err := ctx.Err(); err != nil {
				yield(Node{}, err)
				return
			}
			h := w.queue[0]
			w.queue = w.queue[1:]
			if !yield(w.visit(ctx, h, o)) {
				return
			}
		}
	}
}

type walker struct {
	finder *refFinder
	seen   map[Hash]bool
	queue  []Hash
}

func (w *walker) enqueue(hashes ...Hash) {
	for _, h := range hashes {
		if !w.seen[h] {
			w.seen[h] = true
			w.queue = append(w.queue, h)
		}
	}
}

func (w *walker) visit(ctx context.Context, h Hash, o WalkOptions) (Node, error) {
	n, err := w.finder.reader.Get(ctx, h)
	if err != nil {
		return Node{Hash: h}, err
	}
	refs, err := w.finder.refs(ctx, n)
	w.enqueue(refs...)
	if o.FollowTypes {
		w.enqueue(n.Type)
	}
	return n, err
}

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

// Visited is a node that a [BottomUp] walk has come to.
type Visited struct {
	Node Node
	// Needs are its type, unless it is its own, and then what it refers to. All
	// of them have been visited before it.
	Needs []Hash
	// Tombstone is set if the node was redacted. Then Node has only its hash, and
	// it needs nothing.
	Tombstone *Tombstone
}

// BottomUpOptions of a walk. The zero value works.
type BottomUpOptions struct {
	// Known reports a node that the walk is to pass over, with all below it.
	Known func(Hash) (bool, error)
	// Verify checks each node against its type.
	Verify bool
}

// VisitError says at which node a [BottomUp] walk has ended.
type VisitError struct {
	Hash Hash
	By   Hash // the node that needs it; "" for a root
	Err  error
}

// Error implements error.
func (e *VisitError) Error() string {
	if e.By == "" {
		return e.Err.Error()
	}
	return fmt.Sprintf("node %s needs %s: %v", e.By, e.Hash, e.Err)
}

// Unwrap returns the cause.
func (e *VisitError) Unwrap() error { return e.Err }

// BottomUp visits every node that can be reached from the roots once, types
// included, each after all that it needs: depth first, needs in their order. So
// equal roots in equal order give an equal walk. It ends with the first error: a
// [*VisitError] with that of Get, [Refs] or [Verify], or a [*CorruptError] for a
// node that leads to itself, which only somebody who constructs hashes can make;
// that of Known, of visit, or of ctx as it is.
//
// It keeps a stack of its own, because chains are as long as threads, and few
// payloads on it, because together they could be all of a thread.
func BottomUp(ctx context.Context, r Reader, roots []Hash, o BottomUpOptions, visit func(Visited) error) error {
	w := climber{reader: r, inspector: NewInspector(r), options: o, state: map[Hash]climbState{}, visit: visit}
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

// climber is one walk.
type climber struct {
	reader    Reader
	inspector *Inspector
	options   BottomUpOptions
	state     map[Hash]climbState
	stack     []opened
	kept      int // bytes of the payloads below the top of the stack
	visit     func(Visited) error
}

// climbKeeps bounds the payloads on the stack, in bytes. What is more is read again.
const climbKeeps = 16 << 20

type climbState byte

const (
	climbOpen climbState = iota + 1 // waits for what it needs
	climbDone
)

// opened is a node on the stack. Its payload may be dropped while others are above it.
type opened struct {
	node  Node
	needs []Hash
	next  int // of needs
}

// enter opens a node, unless there is nothing to do for it.
func (w *climber) enter(ctx context.Context, h Hash) error {
	switch w.state[h] {
	case climbDone:
		return nil
	case climbOpen:
		return w.failed(h, &CorruptError{Hash: h, Reason: "it leads to itself"})
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
	if redacted, ok := AsRedacted(err); ok {
		w.state[h] = climbDone
		return w.visit(Visited{Node: Node{Hash: h}, Tombstone: &redacted.Tombstone})
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

func (w *climber) failed(h Hash, err error) error {
	out := &VisitError{Hash: h, Err: err}
	if len(w.stack) > 0 {
		out.By = w.stack[len(w.stack)-1].node.Hash
	}
	return out
}

func (w *climber) needs(ctx context.Context, n Node) ([]Hash, error) {
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

// Needs is what a node with these refs needs: its type, unless it is its own, and
// then the refs.
func Needs(n Node, refs []Hash) []Hash {
	if n.Type == n.Hash {
		return refs
	}
	needs := make([]Hash, 0, len(refs)+1)
	needs = append(needs, n.Type)
	for _, r := range refs {
		if r != n.Type {
			needs = append(needs, r)
		}
	}
	return needs
}

// leave visits the newest open node, all of whose needs have been visited.
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
