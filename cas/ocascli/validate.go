package ocascli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	ucli "github.com/urfave/cli/v2"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/util/cmdline"
	"github.com/united-workforce/uwf/util/exactjson"
	"github.com/united-workforce/uwf/util/jsonschema"
)

func (c *CLI) validateCommand() *ucli.Command {
	return cmdline.Leaf(ucli.Command{
		Name: "validate", Usage: "validate a value against a type or a JSON Schema; store nothing",
		ArgsUsage: "<type|schema> <json|file|->",
		Description: "A schema is JSON text, or - for stdin; if the value is - too, it stands behind the schema there. " +
			"Of a value that does not fit, the JSON result lists the problems, and the status is 4.",
	}, c.schemaValidate)
}

// verdict is the result of schema validate.
type verdict struct {
	Valid    bool                 `json:"valid"`
	Hash     cas.Hash             `json:"hash,omitempty"` // of the value, under a type of the store
	Problems []jsonschema.Problem `json:"problems,omitempty"`
}

func (c *CLI) schemaValidate(ctx context.Context, cc *ucli.Context) error {
	typ, value := cc.Args().First(), cc.Args().Get(1)
	check := c.fitsType
	if typ == "-" || strings.HasPrefix(strings.TrimSpace(typ), "{") {
		check = c.fitsSchema
	}
	hash, err := check(ctx, typ, value)
	if wrong, ok := errors.AsType[*cas.SchemaError](err); ok {
		none := func(io.Writer) error { return nil } // a person reads the error
		return errors.Join(c.print(verdict{Problems: wrong.Problems}, none), err)
	}
	if err != nil {
		return err
	}
	return c.print(verdict{Valid: true, Hash: hash}, func(w io.Writer) error {
		_, err := fmt.Fprintln(w, "valid")
		return err
	})
}

// fitsType holds a value against a type of the store, and returns its hash.
// Errors: [*cas.SchemaError] if it does not fit.
func (c *CLI) fitsType(ctx context.Context, typ, arg string) (cas.Hash, error) {
	s, err := c.open(ctx, "")
	if err != nil {
		return "", err
	}
	h, err := typeOf(ctx, s, typ)
	if err != nil {
		return "", err
	}
	value, err := c.value(arg)
	if err != nil {
		return "", err
	}
	return cas.NewBatch(builtin{s}, c.Env.Now).AddValue(ctx, h, value)
}

// fitsSchema holds a value against a schema that no store needs to have; there is
// no hash. Errors: as of fitsType, with an empty type.
func (c *CLI) fitsSchema(ctx context.Context, schemaArg, valueArg string) (cas.Hash, error) {
	schema, value, err := c.pair(schemaArg, valueArg)
	if err != nil {
		return "", err
	}
	compiled, err := jsonschema.Compile(schema)
	if err != nil {
		return "", cmdline.Invalid(err.Error())
	}
	problems, err := compiled.Validate(ctx, value)
	if err == nil && len(problems) > 0 {
		err = &cas.SchemaError{Problems: problems}
	}
	return "", err
}

// pair reads a schema and a value, both as a store keeps them. If both are on
// stdin the schema comes first.
func (c *CLI) pair(schemaArg, valueArg string) (schema, value any, err error) {
	if schemaArg != "-" || valueArg != "-" {
		if schema, err = c.value(schemaArg); err == nil {
			value, err = c.value(valueArg)
		}
	} else {
		schema, value, err = c.both()
	}
	if err != nil {
		return nil, nil, err
	}
	if schema, err = stored(schema); err == nil {
		value, err = stored(value)
	}
	return schema, value, err
}

// both reads two JSON values from stdin.
func (c *CLI) both() (first, second any, err error) {
	data, err := c.readAll(c.Env.Stdin)
	if err != nil {
		return nil, nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(data))
	var schema, value json.RawMessage
	if err = dec.Decode(&schema); err == nil {
		err = dec.Decode(&value)
	}
	if err == nil && dec.More() {
		err = errors.New("there is more behind the value")
	}
	if err == nil {
		first, err = exactjson.Parse(schema)
	}
	if err == nil {
		second, err = exactjson.Parse(value)
	}
	if err != nil {
		return nil, nil, cmdline.Invalid(fmt.Sprintf("stdin is not a schema and a value: %v", err))
	}
	return first, second, nil
}

// stored makes of a value what a store would give back.
func stored(v any) (any, error) {
	payload, err := cas.Encode(v)
	if err != nil {
		return nil, cmdline.Invalid(err.Error())
	}
	return cas.Decode(payload)
}
