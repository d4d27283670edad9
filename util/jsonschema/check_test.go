package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string][]string{
		`{"properties":{"$ref":{},"x-custom":{}},"const":{"$ref":1},"default":{"type":7}}`: nil,
		`{"$ref":"#/x"}`:                                 {"/$ref: $ref is not allowed: a schema must stand alone; write out here what it refers to"},
		`{"$defs":{}}`:                                   {"/$defs: $defs is not allowed: write each definition out where it is used"},
		`{"$schema":"x","$id":"y"}`:                      {"/$id: $id is not allowed: a schema is named by its hash; remove it", "/$schema: $schema is not allowed: every schema is read as draft-07; remove it"},
		`{"propertes":{}}`:                               {`/propertes: the keyword "propertes" is not supported; did you mean "properties"?`},
		`{"nullable":true}`:                              {`/nullable: nullable is not a keyword of JSON Schema; write {"type": ["string", "null"]}`},
		`{"prefixItems":[{}]}`:                           {"/prefixItems: prefixItems is not supported; use an object with named properties, or items with one schema for all"},
		`{"type":"strng"}`:                               {`/type: "strng" is not a type; the types are array, boolean, integer, null, number, object, string; did you mean "string"?`},
		`{"type":["string","string"]}`:                   {`/type: "string" is there twice`},
		`{"required":["a",1,"a"]}`:                       {"/required/1: must be a property name, but is 1", `/required/2: "a" is there twice`},
		`{"required":true}`:                              {"/required: must be a list of property names, but is true"},
		`{"format":"date-tme"}`:                          {`/format: the format "date-tme" is not supported; the formats are cas_ref, date, date-time, email, ocas_ref, time, uri, uuid; did you mean "date-time"?`},
		`{"pattern":"(?=x)"}`:                            {"/pattern: the pattern does not compile: invalid or unsupported Perl syntax: `(?=` (the syntax is RE2: no look-around, no back-references, \\x{e9} instead of \\u00e9)"},
		`{"patternProperties":{"(":{}}}`:                 {"/patternProperties/(: the pattern does not compile: missing closing ): `(` (the syntax is RE2: no look-around, no back-references, \\x{e9} instead of \\u00e9)"},
		`{"properties":{"a/b":{"x":1}}}`:                 {`/properties/a~1b/x: the keyword "x" is not supported`},
		`{"items":[{}]}`:                                 {"/items: a schema must be an object, but this is [{}]"},
		`{"items":false}`:                                {`/items: a schema must be an object, but this is false; write {} to accept anything, {"not": {}} to accept nothing`},
		`{"anyOf":[{"minLength":-1},true]}`:              {"/anyOf/0/minLength: must be a whole number, at least 0, but is -1", `/anyOf/1: a schema must be an object, but this is true; write {} to accept anything, {"not": {}} to accept nothing`},
		`{"multipleOf":0}`:                               {"/multipleOf: must be a number above 0, but is 0"},
		`{"enum":[],"examples":1}`:                       {"/enum: must be a list with at least one value, but is []", "/examples: must be a list, but is 1"},
		`{"enum":["a",1,null,1.0,"1",[2],[2.0],{},"a"]}`: {"/enum/3: 1 is there twice", "/enum/6: [2] is there twice", `/enum/8: "a" is there twice`},
		`{"additionalProperties":{"not":{"type":[]}}}`:   {"/additionalProperties/not/type: must name at least one type"},
		`"string"`:                                       {`a schema must be an object, but this is "string"`},
	} {
		var lines []string
		for _, p := range jsonschema.Check(parse(t, schema)) {
			lines = append(lines, p.String())
		}
		require.Equal(t, want, lines, schema)
	}
}

func TestCompileRefusesWhatCheckRefuses(t *testing.T) {
	t.Parallel()
	secret := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(secret, []byte("x"), 0o600))
	_, err := jsonschema.Compile(map[string]any{"$ref": "file://" + filepath.ToSlash(secret)})
	var invalid *jsonschema.InvalidError
	require.ErrorAs(t, err, &invalid)
	prosetest.Error(t, err)
}

func TestKeywordsAreTheMetaSchemas(t *testing.T) {
	t.Parallel()
	var meta struct{ Properties map[string]any }
	require.NoError(t, json.Unmarshal(protocol.MetaSchemaJSON(), &meta))
	delete(meta.Properties, "prefixItems") // the original accepts it and then crashes
	for _, k := range jsonschema.Keywords() {
		require.Contains(t, meta.Properties, k)
	}
	require.Len(t, jsonschema.Keywords(), len(meta.Properties))

	_, err := jsonschema.Compile(parse(t, string(protocol.MetaSchemaJSON())))
	require.NoError(t, err, "the meta-schema is a schema")
}

// A schema cannot make the compiler or the validator slow.
func TestHostileSchemas(t *testing.T) {
	t.Parallel()
	deep := any(map[string]any{"type": "string"})
	for range 60 {
		deep = map[string]any{"not": deep}
	}
	prosetest.Text(t, jsonschema.Check(map[string]any{"not": wrap(deep, 60)})[0].Message)

	many := map[string]any{}
	for i := range 5_000 {
		many[fmt.Sprint("p", i)] = map[string]any{"type": "string", "minLength": int64(1)}
	}
	s, err := jsonschema.Compile(map[string]any{"properties": many})
	require.NoError(t, err)
	problems, err := s.Validate(t.Context(), map[string]any{"p1": ""})
	require.NoError(t, err)
	require.Len(t, problems, 1)

	many["last"] = map[string]any{"enum": make([]any, jsonschema.MaxValues)}
	prosetest.Text(t, jsonschema.Check(map[string]any{"properties": many})[0].Message)
}

func wrap(schema any, times int) any {
	for range times {
		schema = map[string]any{"items": schema}
	}
	return schema
}

func TestMetaVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Schema any
		OK     bool
	}
	raw, err := os.ReadFile("testdata/schema-meta-validate.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		require.Equal(t, c.OK, jsonschema.Check(c.Schema) == nil, "%v", c.Schema)
	}
}

// A list of thousands of items that each lack hundreds of fields is told in few
// words: they go to a model, a terminal and a log.
func TestFewProblemsAreTold(t *testing.T) {
	t.Parallel()
	var required []any
	for i := range 300 {
		required = append(required, fmt.Sprintf("k%d", i))
	}
	s, err := jsonschema.Compile(map[string]any{"type": "array", "items": map[string]any{"type": "object", "required": required}})
	require.NoError(t, err)
	items := make([]any, 2000)
	for i := range items {
		items[i] = map[string]any{}
	}
	problems, err := s.Validate(t.Context(), items)
	require.NoError(t, err)
	require.Len(t, problems, 51)
	prosetest.Text(t, problems[50].Message)
}
