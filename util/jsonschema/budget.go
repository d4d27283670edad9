package jsonschema

import (
	"context"
	"fmt"
	"regexp/syntax"
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

// The cost of one value against one part of a schema: perPart, perKey for each of the part's keywords, and
// what its patterns, names, constants and items add.
const (
	perPart  = 25 // the library describes each fault, also of an alternative that nobody asks about
	perKey   = 2
	perFault = 40 // not to be a constant is a fault more often than not
	perByte  = 3  // instructions of a pattern that a byte costs one unit for
	// maxAtOnce bounds what one value may cost one part, which is counted only when the library has done with
	// it. It is twenty times the budget, since a long text may stand beside the one that a pattern is about.
	maxAtOnce = 20 * maxWork
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
	most int // that a part of the schema costs for each byte of a text, or of names
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
	if longest(value)*m.most/perByte > maxAtOnce {
		return nil, &BudgetError{Work: maxWork}
	}
	return check(), nil
}

// longest is the length of the longest text in a value, or of the names of one object.
func longest(value any) (most int) {
	switch v := value.(type) {
	case string:
		return len(v)
	case []any:
		for _, item := range v {
			most = max(most, longest(item))
		}
	case map[string]any:
		names := 0
		for name, item := range v {
			names += len(name) + 1
			most = max(most, longest(item))
		}
		most = max(most, names)
	}
	return most
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
	m.most = max(m.most, p.names, p.text)
	return p, nil
}

// count is the number of items or names of a value.
func count(value any) int {
	switch v := value.(type) {
	case []any:
		return len(v)
	case map[string]any:
		return len(v)
	}
	return 0
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

// priced is what a part of a schema costs.
type priced struct {
	meter  *meter
	each   int // for any value
	names  int // instructions for each byte of a property's name
	text   int // instructions for each byte of a text
	keys   int // looked up in an object
	wanted int // to compare with enum and const
	unique bool
}

// Validate implements [lib.ExtSchema]; it finds nothing wrong.
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
