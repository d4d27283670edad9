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
	for _, schema := range []string{
		`{"properties":{"$ref":{},"x-custom":{}},"const":{"$ref":1},"default":{"type":7}}`,
		`{"$ref":"#/x"}`,
		`{"$defs":{}}`,
		`{"$schema":"x","$id":"y"}`,
		`{"propertes":{}}`,
		`{"nullable":true}`,
		`{"prefixItems":[{}]}`,
		`{"type":"strng"}`,
		`{"type":["string","string"]}`,
		`{"required":["a",1,"a"]}`,
		`{"required":true}`,
		`{"format":"date-tme"}`,
		`{"pattern":"(?=x)"}`,
		`{"patternProperties":{"(":{}}}`,
		`{"properties":{"a/b":{"x":1}}}`,
		`{"items":[{}]}`,
		`{"items":false}`,
		`{"anyOf":[{"minLength":-1},true]}`,
		`{"multipleOf":0}`,
		`{"enum":[],"examples":1}`,
		`{"enum":["a",1,null,1.0,"1",[2],[2.0],{},"a"]}`,
		`{"additionalProperties":{"not":{"type":[]}}}`,
		`"string"`,
	} {
		var lines []string
		for _, p := range jsonschema.Check(parse(t, schema)) {
			lines = append(lines, p.String())
		}
		prosetest.Text(t, lines, schema)
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

// A schema can't make the compiler or the validator slow.
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

// For a list of thousands of items that each lack hundreds of fields, the report is short, because it goes to
// a model, a terminal and a log.
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
