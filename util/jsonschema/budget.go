package jsonschema

import (
	"context"
	"fmt"
	"regexp/syntax"
	"sync"
	"sync/atomic"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

// Checking a text of 140 KB against a crafted schema of the same size can take hours, and the library doesn't
// support contexts. But our copy calls an extension before it checks a value against a part of a schema, where this
// package counts the work and checks the context.

// BudgetError means that checking a value would take too long, so its validity is unknown.
type BudgetError struct{ Work int }

func (e *BudgetError) Error() string {
	return fmt.Sprintf("checking this value against the schema takes too long: more than %d units of work", e.Work)
}

// maxWork bounds the work for one value, in units of about 0.1 µs: about two seconds.
const maxWork = 20_000_000

// The cost of checking one value against one part of a schema: perPart, plus perKey for each keyword of the
// part, plus the cost of its patterns, names, constants and items.
const (
	perPart  = 25 // the library describes each failure, even of an unused alternative
	perKey   = 2
	perFault = 40 // a constant usually doesn't match
	perByte  = 3  // pattern instructions per byte that cost one unit
)

// shared is a budget for many values, in addition to the budget of each.
type shared struct{ left atomic.Int64 }

type sharedKey struct{}

// WithBudget returns a context that bounds the work for all values checked in it: 10 seconds, plus the usual
// time for this number of values.
func WithBudget(ctx context.Context, values int) context.Context {
	s := &shared{}
	s.left.Store(100_000_000 + 2000*int64(values))
	return context.WithValue(ctx, sharedKey{}, s)
}

// askEvery is the work between two checks of the context.
const askEvery = 100_000

// work is the keyword of the extension. A schema can't contain it, because Check rejects unknown keywords.
const work = "x-work"

// meter counts the work of one run at a time.
type meter struct {
	mu   sync.Mutex
	ctx  context.Context
	left int
	next int // when left falls below it, the context is checked
	all  *shared
}

// stopped is the value of the panic that stops a run inside the library.
type stopped struct{ err error }

// run calls check until the budget is used up or the context is done, and returns its result.
func (m *meter) run(ctx context.Context, check func() error) (found error, err error) {
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
	return check(), nil
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

// Compile implements [lib.ExtCompiler]. It assigns a cost to every part of a schema.
func (m *meter) Compile(_ lib.CompilerContext, schema map[string]any) (lib.ExtSchema, error) {
	p := priced{meter: m, each: perPart + perKey*len(schema), wanted: weigh(schema["enum"]) + weigh(schema["const"])}
	if pattern, ok := schema["pattern"].(string); ok {
		p.text += steps(pattern)
	}
	if _, ok := schema["format"]; ok {
		p.text += perByte
	}
	patterns, _ := schema["patternProperties"].(map[string]any)
	for pattern := range patterns {
		p.names += steps(pattern)
	}
	for _, keyword := range []string{"propertyNames", "additionalProperties"} {
		if _, ok := schema[keyword]; ok {
			p.names += perByte
		}
	}
	for _, keyword := range []string{"properties", "required", "dependencies"} {
		p.keys += count(schema[keyword])
	}
	_, p.unique = schema["uniqueItems"]
	return p, nil
}

// count returns the number of items or names of a value.
func count(value any) int {
	switch v := value.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
}

// steps estimates how many instructions a pattern can execute per byte. A short pattern with counted
// repetition can need very many.
func steps(pattern string) int {
	if parsed, err := syntax.Parse(pattern, syntax.Perl); err == nil {
		if program, err := syntax.Compile(parsed.Simplify()); err == nil {
			return len(program.Inst) + perByte
		}
	}
	return len(pattern) + perByte
}

// weigh returns the number of elements to compare in a value.
func weigh(value any) int {
	const perValue = 10
	switch v := value.(type) {
	case nil:
		return 0
	case string:
		return 1 + len(v)/perByte
	case []any:
		n := perValue
		for _, item := range v {
			n += weigh(item)
		}
		return n
	case map[string]any:
		n := perValue
		for name, item := range v {
			n += 1 + len(name)/perByte + weigh(item)
		}
		return n
	}
	return perValue
}

// priced is the cost of a part of a schema.
type priced struct {
	meter  *meter
	each   int // for any value
	names  int // instructions for each byte of a property name
	text   int // instructions for each byte of a text
	keys   int // looked up in an object
	wanted int // elements to compare with enum and const
	unique bool
}

// Validate implements [lib.ExtSchema]. It never reports an error.
func (p priced) Validate(_ lib.ValidationContext, value any) error {
	cost := p.each
	if p.wanted > 0 {
		cost += perFault + p.wanted
	}
	switch v := value.(type) {
	case string:
		cost += p.text * len(v) / perByte
	case []any:
		cost += perKey * len(v)
		if p.unique {
			cost += weigh(v)
		}
	case map[string]any:
		cost += perKey*len(v) + p.keys
		for name := range v {
			cost += p.names * (len(name) + 1) / perByte
		}
	}
	p.meter.spend(cost)
	return nil
}
