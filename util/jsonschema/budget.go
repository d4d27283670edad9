package jsonschema

import (
	"context"
	"fmt"
	"maps"
	"regexp/syntax"
	"slices"
	"sync"
	"sync/atomic"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// A schema of 140 KB can be written so that checking a text of as many bytes takes
// hours, and the library knows no context. But it calls an extension each time it
// checks a value against a part of a schema: there the work is counted, and the
// context asked.

// BudgetError means that checking a value would take too long. Nothing is known
// about it.
type BudgetError struct{ Work int }

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the schema asks too much of this value: more than %d units of work", e.Work)
}

// maxWork bounds the work of one value, in units of about a tenth of a microsecond:
// some two seconds.
const maxWork = 20_000_000

// What parts of the work cost. What does not fit costs most: the library describes
// each fault, also of an alternative that nobody asks about.
const (
	perPart     = 5   // to check one value against one part of a schema
	perChild    = 2   // of an object or array
	perMismatch = 100 // a value that is not the one that is wanted
	perCheck    = 20  // any other condition, which may fail
	perNumber   = 10  // to compare two numbers, or what holds others
	perByte     = 3   // instructions of a pattern that a byte costs one unit for
)

// shared is a budget of many values, beside that of each.
type shared struct{ left atomic.Int64 }

type sharedKey struct{}

// WithBudget bounds the work of all values that are checked in a context: 10 seconds,
// and what is usual for so many values.
func WithBudget(ctx context.Context, values int) context.Context {
	s := &shared{}
	s.left.Store(100_000_000 + 2000*int64(values))
	return context.WithValue(ctx, sharedKey{}, s)
}

// askEvery is the work between two looks at the context.
const askEvery = 100_000

// work is the keyword of the extension; no schema has it, since Check refuses what
// it does not know.
const work = "x-work"

// meter counts the work of one run at a time.
type meter struct {
	mu   sync.Mutex
	ctx  context.Context
	left int
	next int // when left is below it, the context is asked
	all  *shared
	// names and text are the most that a part of the schema costs for each byte.
	names, text int
	schema      any
}

// stopped is what a run panics with, through the library.
type stopped struct{ err error }

// run lets check work until the budget is spent or the context has ended, and
// returns what check found.
func (m *meter) run(ctx context.Context, value any, check func() error) (found error, err error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx, m.left, m.next = ctx, maxWork, maxWork-askEvery
	m.all, _ = ctx.Value(sharedKey{}).(*shared)
	defer func() {
		if m.all != nil && m.all.left.Add(-int64(maxWork-m.left)) < 0 && err == nil {
			err = &BudgetError{Work: maxWork}
		}
		m.ctx, m.all = nil, nil
		if r := recover(); r != nil {
			s, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			err = s.err
		}
	}()
	// A part is counted when the library has done with it. So what one alone would
	// spend is looked at before.
	if m.names+m.text > 0 && m.largest(value, nil) > maxWork {
		return nil, &BudgetError{Work: maxWork}
	}
	return check(), nil
}

// largest is the most that one object's names or one text may cost, in what a value has
// at a path.
func (m *meter) largest(value any, path []any) (most int) {
	switch v := value.(type) {
	case string:
		if most = m.text * len(v) / perByte; most > maxWork {
			most = textCost(m.schema, path) * len(v) / perByte
		}
	case []any:
		for i, item := range v {
			most = max(most, m.largest(item, append(path, i)))
		}
	case map[string]any:
		most = nameCost(m.names, v)
		for name, item := range v {
			most = max(most, m.largest(item, append(path, name)))
		}
	}
	return most
}

// textCost is the most that a part of a schema costs for each byte of a text at a path.
func textCost(schema any, path []any) (most int) {
	parts, _ := schema.(map[string]any)
	if len(path) == 0 {
		most = ownTextCost(parts)
	}
	for key, part := range parts {
		deeper := path
		switch key {
		case "allOf", "anyOf", "oneOf", "not", "if", "then", "else":
		case "properties":
			if name, ok := first[string](path); ok {
				named, _ := part.(map[string]any)
				most = max(most, textCost(named[name], path[1:]))
			}
			continue
		case "patternProperties", "additionalProperties":
			if _, ok := first[string](path); !ok {
				continue
			}
			deeper = path[1:]
		case "items", "contains":
			if _, ok := first[int](path); !ok {
				continue
			}
			deeper = path[1:]
		default:
			continue
		}
		for _, part := range several(key, part) {
			most = max(most, textCost(part, deeper))
		}
	}
	return most
}

func first[T any](path []any) (step T, ok bool) {
	if len(path) > 0 {
		step, ok = path[0].(T)
	}
	return step, ok
}

// several are the schemas that a keyword has.
func several(keyword string, value any) []any {
	switch v := value.(type) {
	case []any:
		return v
	case map[string]any:
		if keyword == "patternProperties" {
			return slices.Collect(maps.Values(v))
		}
	}
	return []any{value}
}

// ownTextCost is what a part of a schema itself costs for each byte of a text.
func ownTextCost(schema map[string]any) (cost int) {
	if pattern, ok := schema["pattern"].(string); ok {
		cost += steps(pattern)
	}
	if _, ok := schema["format"]; ok {
		cost += perByte
	}
	return cost
}

// nameCost is what the names of an object cost.
func nameCost(names int, object map[string]any) (cost int) {
	if names == 0 {
		return 0
	}
	for name := range object {
		cost += names * (len(name) + 1) / perByte
	}
	return cost
}

func (m *meter) spend(n int) {
	if m.left -= n; m.left < 0 {
		panic(stopped{&BudgetError{Work: maxWork}})
	}
	if m.left < m.next {
		m.next = m.left - askEvery
		if err := m.ctx.Err(); err != nil {
			panic(stopped{err})
		}
	}
}

// Compile implements [lib.ExtCompiler]: every part of a schema costs.
func (m *meter) Compile(_ lib.CompilerContext, schema map[string]any) (lib.ExtSchema, error) {
	p := priced{meter: m, each: perPart + len(schema), text: ownTextCost(schema)}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern := range patterns {
		p.names += steps(pattern)
	}
	if _, ok := schema["propertyNames"]; ok {
		p.names += perByte
	}
	if closed, ok := schema["additionalProperties"].(bool); ok && !closed {
		p.names += perByte
	}
	for _, list := range []string{"properties", "required", "dependencies"} {
		switch list := schema[list].(type) {
		case []any:
			p.keys += len(list)
		case map[string]any:
			p.keys += len(list)
		}
	}
	p.wanted, _ = schema["enum"].([]any)
	if only, ok := schema["const"]; ok {
		p.wanted = append(slices.Clip(p.wanted), only)
	}
	for _, w := range p.wanted {
		p.weight += weigh(w)
	}
	for _, key := range []string{"pattern", "format", "not", "contains", "anyOf", "oneOf", "minLength", "maxLength", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", multipleOf, "minItems", "maxItems", "minProperties", "maxProperties"} {
		if _, ok := schema[key]; ok {
			p.each += perCheck
		}
	}
	_, p.unique = schema["uniqueItems"]
	m.names, m.text = max(m.names, p.names), max(m.text, p.text)
	return p, nil
}

// steps is how many instructions a pattern may take for a byte.
// A short one with counts in it may take very many.
func steps(pattern string) int {
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			return len(program.Inst) + perByte
		}
	}
	return len(pattern) + perByte
}

// weigh is how much there is to compare in a value.
func weigh(value any) int {
	switch v := value.(type) {
	case []any:
		n := perNumber
		for _, item := range v {
			n += weigh(item)
		}
		return n
	case map[string]any:
		n := perNumber
		for name, item := range v {
			n += 1 + len(name)/perByte + weigh(item)
		}
		return n
	case string:
		return 1 + len(v)/perByte
	}
	return perNumber
}

// priced is what a part of a schema costs.
type priced struct {
	meter  *meter
	each   int   // for any value
	names  int   // instructions for each byte of a property's name
	text   int   // instructions for each byte of a text
	keys   int   // looked up in an object
	wanted []any // of enum and const
	weight int   // of those
	unique bool
}

// Validate implements [lib.ExtSchema]; it finds nothing wrong.
func (p priced) Validate(_ lib.ValidationContext, value any) error {
	cost := p.each
	switch v := value.(type) {
	case string:
		cost += p.text * len(v) / perByte
	case []any:
		cost += perChild * len(v)
		if p.unique {
			cost += weigh(v)
		}
	case map[string]any:
		cost += perChild*len(v) + p.keys + nameCost(p.names, v)
	}
	if len(p.wanted) > 0 {
		cost += p.compare(value)
	}
	p.meter.spend(cost)
	return nil
}

// compare is what enum and const cost.
func (p priced) compare(value any) int {
	cost := len(p.wanted)
	switch value.(type) {
	case []any, map[string]any:
		return cost + perMismatch + p.weight
	case string, bool, nil:
	default:
		cost += p.weight
	}
	if slices.ContainsFunc(p.wanted, func(w any) bool { return isScalar(w) && w == value }) {
		return cost
	}
	return cost + perMismatch
}

func isScalar(value any) bool {
	switch value.(type) {
	case []any, map[string]any:
		return false
	}
	return true
}
