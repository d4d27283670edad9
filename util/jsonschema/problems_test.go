package jsonschema_test

import (
	"encoding/json"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
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

// problemsOf validates and writes each problem as a line.
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
		want          []string
	}{
		"valid":                {object, `{"a":"x","n":1}`, nil},
		"all fields at once":   {object, `{"b":1,"n":1.5,"s":"z"}`, []string{"/a: is required, but missing; it must be a string", "/b: is not allowed here; allowed are a, n, s", "/n: must be a whole number, but is 1.5", `/s: must be one of "x", "y", but is "z"`}},
		"not an object":        {object, `[1]`, []string{"must be an object (key: value), but is [1]"}},
		"within a list":        {`{"items":{"type":"object","required":["k"]}}`, `[{"k":1},{},3]`, []string{"/1/k: is required, but missing", "/2: must be an object (key: value), but is 3"}},
		"names like keywords":  {`{"properties":{"anyOf":{"minLength":2,"pattern":"b"},"required":{"const":1},"a/b~c%":{"type":"null"},"é #":{"type":"null"}}}`, `{"anyOf":"a","required":2,"a/b~c%":1,"é #":2}`, []string{"/anyOf: must have at least 2 characters, but has 1", `/anyOf: must match the pattern "b", but is "a"`, "/a~1b~0c%: must be null, but is 1", "/required: must be 1, but is 2", "/é #: must be null, but is 2"}},
		"the claimed variant":  {variants, `{"$status":"ready","reason":"r"}`, []string{"/plan: is required, but missing; it must be a string"}},
		"another variant":      {variants, `{"$status":"blocked","reason":1}`, []string{"/reason: must be a string, but is 1"}},
		"no such variant":      {variants, `{"$status":"done"}`, []string{`/$status: must be one of "ready", "blocked", but is "done"`}},
		"no variant claimed":   {variants, `{"plan":"p"}`, []string{`/$status: is required, but missing; it must be one of "ready", "blocked"`}},
		"nullable":             {`{"anyOf":[{"type":"string"},{"type":"null"}]}`, `1`, []string{"must be a string or null, but is 1"}},
		"the right type":       {`{"anyOf":[{"type":"object","required":["a"]},{"type":"null"}]}`, `{}`, []string{"/a: is required, but missing"}},
		"no telling which":     {`{"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `{}`, []string{"fits none of 2 variants: (1) /a: is required, but missing; (2) /b: is required, but missing"}},
		"two variants at once": {`{"oneOf":[{"title":"short","maxLength":3},{"minLength":1}]}`, `"ab"`, []string{"fits more than one variant, of which only one may fit; the variants are short, 2"}},
		"all of":               {`{"allOf":[{"minimum":3},{"maximum":1}]}`, `2`, []string{"must be at least 3, but is 2", "must be at most 1, but is 2"}},
		"if, then":             {`{"if":{"type":"string"},"then":{"minLength":2},"else":{"exclusiveMinimum":0}}`, `"a"`, []string{"must have at least 2 characters, but has 1"}},
		"else":                 {`{"if":{"type":"string"},"then":{"minLength":2},"else":{"exclusiveMinimum":0}}`, `0`, []string{"must be more than 0, but is 0"}},
		"not":                  {`{"not":{"type":"string"}}`, `"a"`, []string{`must not fit {"type":"string"}`}},
		"contains":             {`{"contains":{"const":1}}`, `[2]`, []string{`must have an item that fits {"const":1}`}},
		"unique":               {`{"uniqueItems":true}`, `[1,1.0]`, []string{"must not have the same item twice"}},
		"counts":               {`{"minItems":3,"minProperties":3,"maxLength":1}`, `[1]`, []string{"must have at least 3 items, but has 1"}},
		"properties":           {`{"maxProperties":1}`, `{"a":1,"b":2}`, []string{"must have at most 1 properties, but has 2"}},
		"multiple":             {`{"multipleOf":0.1}`, `0.3`, []string{"must be a multiple of 0.1, but is 0.3"}},
		"property names":       {`{"propertyNames":{"pattern":"^a","maxLength":2}}`, `{"bcd":1}`, []string{"/bcd: the name of this property must have at most 2 characters, but has 3", `/bcd: the name of this property must match the pattern "^a", but is "bcd"`}},
		"patterns of names":    {`{"patternProperties":{"^x":{"type":"string"}},"additionalProperties":false}`, `{"x1":1,"y":2}`, []string{"/x1: must be a string, but is 1", "/y: is not allowed here"}},
		"more properties":      {`{"additionalProperties":{"type":"integer"}}`, `{"a":"x"}`, []string{`/a: must be a whole number, but is "x"`}},
		"long values are cut":  {`{"type":"null"}`, `"` + strings.Repeat("é", 200) + `"`, []string{`must be null, but is "` + strings.Repeat("é", 79) + "…"}},
		"a hash":               {`{"format":"cas_ref"}`, `"fpe5xvfy4ksbx"`, []string{`must be the hash of a node (13 characters, upper case), but is "fpe5xvfy4ksbx"`}},
		"beyond F":             {`{"format":"ocas_ref"}`, `"G000000000000"`, []string{`must be the hash of a node (13 characters, upper case), but is "G000000000000"`}},
		"no text, no format":   {`{"format":"uuid"}`, `1`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			require.Equal(t, c.want, problemsOf(t, c.schema, c.value))
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
