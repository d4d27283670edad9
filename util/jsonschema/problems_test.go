package jsonschema_test

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/prosetest"
)

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

func compile(t *testing.T, schema any) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.Compile(schema)
	require.NoError(t, err)
	return s
}

func validate(t *testing.T, s *jsonschema.Schema, value any) []jsonschema.Problem {
	t.Helper()
	problems, err := s.Validate(t.Context(), value)
	require.NoError(t, err)
	return problems
}

// problemsOf validates a value and formats each problem as a line.
func problemsOf(t *testing.T, schema, value string) []string {
	t.Helper()
	var lines []string
	for _, p := range validate(t, compile(t, parse(t, schema)), parse(t, value)) {
		lines = append(lines, p.String())
	}
	return lines
}

func TestProblems(t *testing.T) {
	t.Parallel()
	const object = `{"type":"object","properties":{"a":{"type":"string"},"n":{"type":"integer"},"s":{"enum":["x","y"]}},"required":["a","n"],"additionalProperties":false}`
	const variants = `{"oneOf":[
		{"properties":{"$status":{"const":"ready"},"plan":{"type":"string"}},"required":["$status","plan"]},
		{"properties":{"$status":{"enum":["blocked"]},"reason":{"type":"string"}},"required":["$status","reason"]}]}`
	for name, c := range map[string]struct {
		schema, value string
	}{
		"valid":                {object, `{"a":"x","n":1}`},
		"all fields at once":   {object, `{"b":1,"n":1.5,"s":"z"}`},
		"not an object":        {object, `[1]`},
		"within a list":        {`{"items":{"type":"object","required":["k"]}}`, `[{"k":1},{},3]`},
		"names like keywords":  {`{"properties":{"anyOf":{"minLength":2,"pattern":"b"},"required":{"const":1},"a/b~c%":{"type":"null"},"é #":{"type":"null"}}}`, `{"anyOf":"a","required":2,"a/b~c%":1,"é #":2}`},
		"the claimed variant":  {variants, `{"$status":"ready","reason":"r"}`},
		"another variant":      {variants, `{"$status":"blocked","reason":1}`},
		"no such variant":      {variants, `{"$status":"done"}`},
		"no variant claimed":   {variants, `{"plan":"p"}`},
		"one of several":       {strings.Replace(variants, `"const":"ready"`, `"enum":["ready","soon"]`, 1), `{"$status":"soon","reason":"r"}`},
		"none of several":      {strings.Replace(variants, `"const":"ready"`, `"enum":["ready","soon"]`, 1), `{"$status":"late"}`},
		"nullable":             {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`},
		"the right type":       {`{"anyOf":[{"type":"object","required":["a"]},{"type":"null"}]}`, `{}`},
		"no telling which":     {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`},
		"two variants at once": {`{"oneOf":[{"title":"short","maxLength":3},{"minLength":1}]}`, `"ab"`},
		"all of":               {`{"allOf":[{"minimum":3},{"maximum":1}]}`, `2`},
		"if, then":             {`{"if":{"type":"string"},"then":{"minLength":2},"else":{"exclusiveMinimum":0}}`, `"a"`},
		"else":                 {`{"if":{"type":"string"},"then":{"minLength":2},"else":{"exclusiveMinimum":0}}`, `0`},
		"not":                  {`{"not":{"type":"string"}}`, `"a"`},
		"contains":             {`{"contains":{"const":1}}`, `[2]`},
		"unique":               {`{"uniqueItems":true}`, `[1,1.0]`},
		"counts":               {`{"minItems":3,"minProperties":3,"maxLength":1}`, `[1]`},
		"properties":           {`{"maxProperties":1}`, `{"a":1,"b":2}`},
		"multiple":             {`{"multipleOf":0.1}`, `0.3`},
		"property names":       {`{"propertyNames":{"pattern":"^a","maxLength":2}}`, `{"bcd":1}`},
		"patterns of names":    {`{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"x1":1,"y":2}`},
		"more properties":      {`{"additionalProperties":{"type":"integer"}}`, `{"a":"x"}`},
		"long values are cut":  {`{"type":"null"}`, `"` + strings.Repeat("é", 200) + `"`},
		"a hash":               {`{"format":"cas_ref"}`, `"fpe5xvfy4ksbx"`},
		"beyond F":             {`{"format":"ocas_ref"}`, `"G000000000000"`},
		"no text, no format":   {`{"format":"uuid"}`, `1`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			prosetest.Text(t, problemsOf(t, c.schema, c.value))
		})
	}
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for format, c := range map[string]struct{ good, bad string }{
		"ocas_ref":  {"FPE5XVFY4KSBX", "FPE5XVFY4KSB"},
		"cas_ref":   {"0000000000000", "0000000000000 "},
		"date-time": {"2026-01-31T12:00:00.5+01:00", "2026-01-31 12:00"},
		"date":      {"2026-02-28", "2026-02-30"},
		"time":      {"12:00:00Z", "12:00"},
		"email":     {"a@b.example", "a.b.example"},
		"uri":       {"https://a.example/b?c#d", "/b"},
		"uuid":      {"123e4567-e89b-12d3-a456-426614174000", "123e4567"},
	} {
		schema := `{"format":"` + format + `"}`
		require.Empty(t, problemsOf(t, schema, `"`+c.good+`"`), format)
		require.Len(t, problemsOf(t, schema, `"`+c.bad+`"`), 1, format)
	}
}

func TestValuesThatAreNoJSON(t *testing.T) {
	t.Parallel()
	s := compile(t, map[string]any{})
	for name, v := range map[string]any{
		"NaN":    map[string]any{"a": math.NaN()},
		"struct": []any{struct{}{}},
		"bytes":  []byte("x"),
	} {
		require.Len(t, validate(t, s, v), 1, name)
	}
	deep := any(nil)
	for range 200 {
		deep = []any{deep}
	}
	require.Equal(t, []jsonschema.Problem{{Message: "nested deeper than 100"}}, validate(t, s, deep))
}

func TestSchemasAreSafeForConcurrentUse(t *testing.T) {
	t.Parallel()
	s := compile(t, parse(t, `{"type":"object","required":["a"]}`))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if problems, err := s.Validate(t.Context(), map[string]any{}); err != nil || len(problems) != 1 {
					t.Error("not one problem")
				}
			}
		})
	}
	wg.Wait()
}
