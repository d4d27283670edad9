// Package jsonschema compiles and applies JSON Schemas in the dialect that a
// store accepts, and is the only importer of the schema library. The dialect is
// draft-07 for the keywords of [Keywords]; formats are asserted; nothing is ever
// loaded from outside.
//
// multipleOf divides 64-bit floats, as the original does: 0.3 is no multiple of
// 0.1. Lengths count code points. A keyword applies only to the type that it is
// about: {"required": ["a"]} accepts every string.
package jsonschema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/united-workforce/uwf/protocol"
)

// Schema is a compiled schema; safe for concurrent use.
type Schema struct {
	doc   any // as given; for messages
	lib   *lib.Schema
	quick quick
}

// Problem is one violation.
type Problem struct {
	Path    string // JSON pointer into the value; "" is the whole
	Message string // a predicate: "must be a string, but is null"
}

// String is the problem as one line.
func (p Problem) String() string {
	if p.Path == "" {
		return p.Message
	}
	return p.Path + ": " + p.Message
}

// InvalidError says why a schema was not compiled.
type InvalidError struct{ Problems []Problem }

func (e *InvalidError) Error() string {
	lines := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		lines[i] = p.String()
	}
	return "invalid schema: " + strings.Join(lines, "; ")
}

// base is the name of the schema within the library. It is opaque, so that no
// reference can be resolved against it.
const base = "mem:///schema"

// Compile checks and compiles a schema given as a JSON value. A schema that
// [Check] finds fault with is an *InvalidError.
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
	if err := c.AddResource(base, bytes.NewReader(raw)); err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	compiled, err := c.Compile(base)
	if err != nil {
		return nil, fmt.Errorf("compile schema: %w", err)
	}
	return &Schema{doc: schema, lib: compiled, quick: newQuick(schema)}, nil
}

func isRef(v any) bool {
	s, ok := v.(string)
	return !ok || protocol.Hash(s).Valid()
}

// Validate returns what is wrong with a JSON value, sorted; nil if nothing is.
func (s *Schema) Validate(value any) []Problem {
	if s.quick(value, 0) {
		return nil
	}
	return s.validate(value)
}

// validate asks the library.
func (s *Schema) validate(value any) []Problem {
	if p := checkValue(value); p != nil {
		return []Problem{*p}
	}
	err := s.lib.Validate(value)
	if err == nil {
		return nil
	}
	var invalid *lib.ValidationError
	if !errors.As(err, &invalid) {
		return []Problem{{Message: err.Error()}}
	}
	r := reporter{schema: s.doc, value: value}
	return sorted(r.problems(invalid))
}
