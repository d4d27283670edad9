// Package library is the judge of values: the schema library, of which it is the
// only importer, in the dialect of package jsonschema. The library compiles its
// own schemas before main, 2 ms in every program that links it. So those programs
// do that keep a user's data, and agents ask one of them.
package library

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	lib "github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
)

// base is the name of the schema within the library. It is opaque, so that no
// reference can be resolved against it.
const base = "mem:///schema"

// Judge is the [jsonschema.Judge] that decides about everything. Its verdicts end
// with the context, and with a [*BudgetError] where a value would cost too much.
func Judge(schema any) (jsonschema.Verdict, error) {
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
	return func(ctx context.Context, value any) ([]jsonschema.Problem, error) {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		said, err := counted.run(ctx, value, func() error { return compiled.Validate(value) })
		if err != nil {
			return nil, err
		}
		return problemsOf(schema, value, said)
	}, nil
}

// problemsOf reads what the library says of a value.
func problemsOf(schema, value any, said error) ([]jsonschema.Problem, error) {
	var invalid *lib.ValidationError
	if errors.As(said, &invalid) {
		return reporter{schema: schema, value: value}.problems(invalid), nil
	}
	return nil, said
}

func isRef(v any) bool {
	s, ok := v.(string)
	return !ok || protocol.Hash(s).Valid()
}
