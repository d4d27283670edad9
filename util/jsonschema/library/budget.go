package library

import (
	"context"
	"fmt"
	"sync"

	lib "github.com/santhosh-tekuri/jsonschema/v5"
)

// A schema of 140 KB can be so made that judging a text of as many bytes takes
// hours, and the library knows no context. But it calls an extension each time that
// it holds a part of a schema against a value: there the work is counted, and the
// context asked.

// BudgetError means that judging a value would take too long. Nothing is known
// about it.
type BudgetError struct{ Work int }

// Error implements error.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the schema asks too much of this value: more than %d comparisons", e.Work)
}

// maxWork bounds the work of one value, in comparisons: some seconds.
const maxWork = 30_000_000

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
}

// stopped is what a run panics with, through the library.
type stopped struct{ err error }

// run lets judge work until the budget is spent or the context has ended.
func (m *meter) run(ctx context.Context, judge func() error) (said error, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ctx, m.left, m.next = ctx, maxWork, maxWork-askEvery
	defer func() {
		m.ctx = nil
		if r := recover(); r != nil {
			s, ok := r.(stopped)
			if !ok {
				panic(r)
			}
			err = s.err
		}
	}()
	return judge(), nil
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
	values, _ := schema["enum"].([]any)
	patterns, _ := schema["patternProperties"].(map[string]any)
	_, pattern := schema["pattern"]
	_, format := schema["format"]
	return priced{meter: m, each: len(schema) + len(values) + len(patterns), names: len(patterns), text: pattern || format}, nil
}

// priced is what a part of a schema costs.
type priced struct {
	meter *meter
	each  int  // for any value
	names int  // for each property of an object
	text  bool // the bytes of a text count
}

// Validate implements [lib.ExtSchema]; it finds nothing wrong.
func (p priced) Validate(_ lib.ValidationContext, value any) error {
	cost := p.each
	switch v := value.(type) {
	case string:
		if p.text {
			cost += len(v)
		}
	case map[string]any:
		cost += p.names * len(v)
	}
	p.meter.spend(cost)
	return nil
}
