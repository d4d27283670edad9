// Package jsonschema checks JSON Schemas in the dialect that a store accepts, and
// checks values against them. The dialect is draft-07 for the keywords that
// [Check] knows; formats are asserted; nothing is ever loaded from outside.
//
// multipleOf divides 64-bit floats, as the original does: 0.3 is no multiple of
// 0.1. Lengths count code points. A keyword applies only to the type that it is
// about: {"required": ["a"]} accepts every string.
//
// Values are checked by the schema library, of which this package is the only
// importer. It is a copy that compiles nothing before main.
package jsonschema

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	lib "github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
	"github.com/united-workforce/uwf/protocol"
)

// base is the name of the schema within the library. It is opaque, so that no
// reference can be resolved against it.
const base = "mem:///schema"

// Schema is a compiled schema; safe for concurrent use.
type Schema struct {
	schema   any
	compiled *lib.Schema
	meter    *meter
}

// Compile checks and compiles a schema given as a JSON value. A schema that
// [Check] finds fault with is an *[InvalidError].
func Compile(schema any) (*Schema, error) {
	if problems := Check(schema); len(problems) > 0 {
		return nil, &InvalidError{problems}
	}
	raw, err := json.Marshal(rename(schema))
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	c := lib.NewCompiler()
	c.Draft, c.AssertFormat = lib.Draft7, true
	c.LoadURL = func(string) (io.ReadCloser, error) {
		return nil, errors.New("schemas are not loaded from outside")
	}
	c.Formats = map[string]func(any) bool{"ocas_ref": isRef, "cas_ref": isRef}
	c.RegisterExtension(multipleOf, nil, multipleOfCompiler{})
	counted := &meter{}
	c.RegisterExtension(work, nil, counted)
	if err := c.AddResource(base, bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &Schema{schema: schema, compiled: compiled, meter: counted}, nil
}

// Validate returns what is wrong with a JSON value, sorted; nil if nothing is.
// Errors: the context's, and a [*BudgetError] where the value would cost too much;
// then nothing is known about it.
func (s *Schema) Validate(ctx context.Context, value any) ([]Problem, error) {
	if p := checkValue(value); p != nil {
		return []Problem{*p}, nil
	}
	found, err := s.meter.run(ctx, value, func() error { return s.compiled.Validate(value) })
	if err != nil {
		return nil, fmt.Errorf("check a value against its schema: %w", err)
	}
	if invalid, ok := errors.AsType[*lib.ValidationError](found); ok {
		return few(sorted(reporter{schema: s.schema, value: value}.problems(invalid))), nil
	}
	if found != nil {
		return nil, fmt.Errorf("check a value against its schema: %w", found)
	}
	return nil, nil
}

func isRef(v any) bool {
	s, ok := v.(string)
	return !ok || protocol.Hash(s).Valid()
}
