// Package jsonschema checks JSON Schemas in the dialect that a store accepts, and
// holds values against them. The dialect is draft-07 for the keywords that
// [Check] knows; formats are asserted; nothing is ever loaded from outside.
//
// multipleOf divides 64-bit floats, as the original does: 0.3 is no multiple of
// 0.1. Lengths count code points. A keyword applies only to the type that it is
// about: {"required": ["a"]} accepts every string.
//
// The judge of values is the schema library, in package library. It costs every
// program that links it two milliseconds before main, so it is not linked here: a
// program hands in a [Judge]. What is certain without it, such as that a common
// value fits, is decided by a quick check, and asks no judge.
package jsonschema

import (
	"context"
	"errors"
	"fmt"
	"regexp/syntax"
	"sync"
)

// Judge prepares to judge values of a schema, which [Check] has found nothing
// wrong with. A [Schema] calls it once, and only when a value needs it.
type Judge func(schema any) (Verdict, error)

// Verdict says what is wrong with a JSON value; nil if nothing is. An error means
// that nothing is known about the value. It is safe for concurrent use.
type Verdict func(ctx context.Context, value any) ([]Problem, error)

// ErrNoJudge means that a value needs a judge, and none was handed in.
var ErrNoJudge = errors.New("nothing was handed in that could judge the value")

// Schema is a compiled schema; safe for concurrent use.
type Schema struct {
	quick   quick
	size    int // of the schema, in values
	verdict func() (Verdict, error)
}

// Compile checks and compiles a schema given as a JSON value. A nil judge will
// do for values that the quick check accepts. A schema that [Check] finds fault
// with is an *[InvalidError].
func Compile(schema any, judge Judge) (*Schema, error) {
	if problems := Check(schema); len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	prepare := func() (Verdict, error) {
		if judge == nil {
			return nil, ErrNoJudge
		}
		return judge(schema)
	}
	return &Schema{quick: newQuick(schema), size: sizeOf(schema) + patterns(schema), verdict: sync.OnceValues(prepare)}, nil
}

// Validate returns what is wrong with a JSON value, sorted; nil if nothing is.
// Errors: the judge's, [ErrNoJudge]; then nothing is known about the value.
func (s *Schema) Validate(ctx context.Context, value any) ([]Problem, error) {
	if s.look(value) == fits {
		return nil, nil
	}
	return s.ask(ctx, value)
}

// maxQuick is how much work the quick check is let do, at most a second's: the
// size of the schema times that of the value.
const maxQuick = 5_000_000

// sizeOf is how many values there are in a value, itself included; long texts count
// for more.
func sizeOf(value any) int {
	n := 1
	switch v := value.(type) {
	case string:
		n += len(v) / 8
	case []any:
		for _, item := range v {
			n += sizeOf(item)
		}
	case map[string]any:
		for name, item := range v {
			n += 1 + len(name)/8 + sizeOf(item)
		}
	}
	return n
}

// patterns is how much the patterns of a schema weigh, beside their texts.
func patterns(schema any) (n int) {
	switch v := schema.(type) {
	case []any:
		for _, item := range v {
			n += patterns(item)
		}
	case map[string]any:
		if pattern, ok := v["pattern"].(string); ok {
			n += Instructions(pattern)
		}
		if all, ok := v["patternProperties"].(map[string]any); ok {
			for pattern := range all {
				n += Instructions(pattern)
			}
		}
		for _, item := range v {
			n += patterns(item)
		}
	}
	return n
}

// Instructions is how many instructions a pattern may take for a byte of a text: a
// short one with counts in it may take very many.
func Instructions(pattern string) int {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return len(pattern)
	}
	program, err := syntax.Compile(parsed.Simplify())
	if err != nil {
		return len(pattern)
	}
	return len(program.Inst)
}

// look is the quick check.
func (s *Schema) look(value any) answer {
	if !isPlain(value, 0) || s.size*sizeOf(value) > maxQuick {
		return unsure // the quick check cannot be stopped; the judge counts its work
	}
	return s.quick(value)
}

// ask leaves it to the judge, which gets nothing that JSON cannot say.
func (s *Schema) ask(ctx context.Context, value any) ([]Problem, error) {
	if p := checkValue(value); p != nil {
		return []Problem{*p}, nil
	}
	verdict, err := s.verdict()
	if err != nil {
		return nil, fmt.Errorf("schema: %w", err)
	}
	problems, err := verdict(ctx, value)
	if err != nil {
		return nil, fmt.Errorf("hold a value against its schema: %w", err)
	}
	return few(Sorted(problems)), nil
}

// Fits reports whether nothing is wrong with a JSON value. It needs the judge less
// often than [Schema.Validate], whose errors it has.
func (s *Schema) Fits(ctx context.Context, value any) (bool, error) {
	switch s.look(value) {
	case fits:
		return true, nil
	case fails:
		return false, nil
	}
	problems, err := s.ask(ctx, value)
	return err == nil && len(problems) == 0, err
}
