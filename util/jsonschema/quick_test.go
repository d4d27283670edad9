package jsonschema_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/jsonschema/library"
)

// What the quick check is sure of, the library says too: for schemas and values
// made of the same few parts, so that about half of them fit.
func TestQuickIsSound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	told, all := map[string]int{}, 0
	for range 4000 {
		schema := randomSchema(r, 3)
		if len(jsonschema.Check(schema)) > 0 {
			continue
		}
		s, err := jsonschema.Compile(schema, library.Judge)
		require.NoError(t, err)
		for range 15 {
			all++
			told[hold(t, s, schema, randomValue(r, 3))]++
		}
	}
	require.Less(t, told["unsure"], all/5, "it is sure of most: %v", told)
	require.Greater(t, told["fits"], all/5, "%v", told)
	require.Greater(t, told["fails"], all/5, "%v", told)
}

// hold holds the quick check against the library, and returns what it said.
func hold(t *testing.T, s *jsonschema.Schema, schema, value any) string {
	t.Helper()
	problems, said := ask(t, s, value), s.Look(value)
	switch said {
	case "fits":
		require.Empty(t, problems, "schema %v, value %v", schema, value)
	case "fails":
		require.NotEmpty(t, problems, "schema %v, value %v", schema, value)
	}
	return said
}

// FuzzQuickIsSound is the same for what a fuzzer makes up.
func FuzzQuickIsSound(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":0}},"required":["a"],"additionalProperties":false}`, `{"a":1}`},
		{`{"anyOf":[{"type":"string","format":"ocas_ref"},{"type":"null"}]}`, `null`},
		{`{"enum":["a",1,null]}`, `1.0`}, {`{"items":{"const":"x"}}`, `["x"]`}, {`{"additionalProperties":{"type":"number"}}`, `{"a":1e300}`},
		{`{"oneOf":[{"multipleOf":0.1},{"pattern":"^a"},{"not":{"minItems":2}}],"uniqueItems":true}`, `[1,1.0]`},
		{`{"patternProperties":{"^a":{"maxLength":1}},"propertyNames":{"format":"uuid"},"if":{"required":["ab"]},"else":{"contains":{}}}`, `{"ab":"é"}`},
		{`{"format":"date-time"}`, `"2026-01-31T12:00:00.5+01:00"`}, {`{"format":"uri"}`, `"https://a.example/b?c=d#e"`}, {`{"format":"time"}`, `"12:00:00Z"`},
	} {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schemaText, valueText string) {
		var schema, value any
		if json.Unmarshal([]byte(schemaText), &schema) != nil || json.Unmarshal([]byte(valueText), &value) != nil || len(jsonschema.Check(schema)) > 0 {
			return
		}
		s, err := jsonschema.Compile(schema, library.Judge)
		if err != nil {
			return
		}
		hold(t, s, schema, value)
		hold(t, s, schema, integers(value))
	})
}

// Valid nodes of our kinds are accepted without the library.
func TestQuickKnowsOurKinds(t *testing.T) {
	t.Parallel()
	samples := map[protocol.Kind]string{
		protocol.KindText: `"t"`,
		protocol.KindTurn: `{"index":0,"role":"assistant","content":"c","toolCalls":[{"id":"1","name":"n","args":{"a":[1]}}],"atMs":5}`,
		protocol.KindStep: `{"start":"0000000000000","prev":null,"index":0,"visits":{"a":1},"limitBase":0,"role":"a","output":"0000000000000",
			"detail":"0000000000000","agent":"x","edgePrompt":"","cwd":"","startedAtMs":1,"completedAtMs":2,"sessionId":"","extractedBy":"value"}`,
		protocol.KindStart:  `{"workflow":"0000000000000","prompt":"p","cwd":"/"}`,
		protocol.KindDetail: `{"sessionId":"s","capture":"turns","turns":["0000000000000"],"durationMs":1}`,
	}
	for kind, text := range samples {
		s, err := jsonschema.Compile(parse(t, string(protocol.SchemaJSON(protocol.Type{Kind: kind, Version: 1}))), nil)
		require.NoError(t, err)
		require.Equal(t, "fits", s.Look(integers(parse(t, text))), kind)
	}
}

// ask is what the library says.
func ask(t *testing.T, s *jsonschema.Schema, value any) []jsonschema.Problem {
	t.Helper()
	problems, err := s.Ask(t.Context(), value)
	require.NoError(t, err)
	return problems
}

func parse(t *testing.T, text string) any {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// integers makes whole numbers what a store makes of them.
func integers(v any) any {
	switch v := v.(type) {
	case float64:
		if v == math.Trunc(v) {
			return int64(v)
		}
	case json.Number:
		n, err := v.Int64()
		if err == nil {
			return n
		}
	case []any:
		for i := range v {
			v[i] = integers(v[i])
		}
	case map[string]any:
		for k := range v {
			v[k] = integers(v[k])
		}
	}
	return v
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

func randomValue(r *rand.Rand, depth int) any {
	switch n := r.IntN(10); {
	case n < 2 && depth > 0:
		m := map[string]any{}
		for range r.IntN(3) {
			m[pick(r, "a", "b", "c")] = randomValue(r, depth-1)
		}
		return m
	case n < 4 && depth > 0:
		list := []any{}
		for range r.IntN(3) {
			list = append(list, randomValue(r, depth-1))
		}
		return list
	}
	return pick(r, any("x"), any("a"), any("ab"), any("0123456789ABC"), any("2026-01-31"), any("é"), any(int64(0)), any(int64(1)), any(int64(3)),
		any(-1.5), any(0.3), any(2.0), any(float64(1<<60)), any(int64(1<<60)), any(true), any(false), any(nil), any(math.Inf(1)))
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	s := map[string]any{}
	for range r.IntN(4) {
		name := pick(r, "type", "type", "enum", "const", "format", "required", "title", "pattern", "uniqueItems", "multipleOf",
			"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum",
			"minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties",
			"properties", "properties", "additionalProperties", "patternProperties", "propertyNames", "items", "contains",
			"anyOf", "oneOf", "allOf", "not", "if", "then", "else")
		switch name {
		case "type":
			s[name] = pick(r, any("string"), any("integer"), any("number"), any("object"), any("array"), any([]any{"null", "boolean"}))
		case "enum":
			s[name] = []any{randomValue(r, 0), randomValue(r, 1)}
		case "const":
			s[name] = randomValue(r, 1)
		case "format":
			s[name] = pick(r, "ocas_ref", "date", "email")
		case "required":
			s[name] = []any{pick(r, "a", "b")}
		case "title":
			s[name] = "t"
		case "pattern":
			s[name] = pick(r, "^a", "b$", "[0-9]")
		case "uniqueItems":
			s[name] = r.IntN(2) == 0
		case "multipleOf":
			s[name] = pick(r, any(0.1), any(int64(1)), any(1.5))
		case "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum":
			s[name] = pick(r, any(int64(1)), any(0.3), any(-1.5), any(float64(1<<60)))
		case "minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties":
			s[name] = int64(r.IntN(3))
		default:
			if depth > 0 {
				s[name] = randomSub(r, name, depth-1)
			}
		}
	}
	return s
}

func randomSub(r *rand.Rand, keyword string, depth int) any {
	switch keyword {
	case "properties":
		return map[string]any{"a": randomSchema(r, depth), "b": randomSchema(r, depth)}
	case "patternProperties":
		return map[string]any{"^a": randomSchema(r, depth), "[bc]": randomSchema(r, depth)}
	case "anyOf", "oneOf", "allOf":
		return []any{randomSchema(r, depth), randomSchema(r, depth)}
	case "additionalProperties":
		if r.IntN(2) == 0 {
			return r.IntN(2) == 0
		}
	}
	return randomSchema(r, depth)
}

// A format is told from its text alone, so texts that are nearly right are made
// of right ones.
func TestQuickFormatsAreSound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	right := map[string][]string{
		"ocas_ref":  {"FPE5XVFY4KSBX"},
		"date":      {"2026-01-31", "2024-02-29", "0000-12-31"},
		"time":      {"12:00:00Z", "23:59:59.125+23:59", "00:00:00-00:00", "23:59:60Z", "12:00:00z"},
		"date-time": {"2026-01-31T12:00:00Z", "2026-01-31t12:00:00.5+01:00"},
		"uuid":      {"123e4567-e89b-12d3-a456-426614174000"},
		"uri":       {"https://example.org/a?b=c#d", "http://a", "urn:x:y", "https://a:80/%20", "https://[::1]/"},
		"email":     {"a@b.example"},
	}
	for format, texts := range right {
		s, err := jsonschema.Compile(map[string]any{"format": format}, library.Judge)
		require.NoError(t, err)
		sure := 0
		for range 3000 {
			text := []byte(pick(r, texts...))
			for range r.IntN(3) {
				i := r.IntN(len(text))
				text[i] = pick(r, []byte("0159:-+.TZtz/?#%[]@ é\n~")...)
				if r.IntN(3) == 0 {
					text = append(text[:i], text[i+1:]...)
				}
			}
			if hold(t, s, format, string(text)) != "unsure" {
				sure++
			}
		}
		require.Equal(t, format != "email", sure > 0, format)
	}
}

// The quick check is sure of nearly everything that the original's tests ask.
func TestQuickDecidesTheVectors(t *testing.T) {
	t.Parallel()
	var cases []struct {
		Schema, Value any
		Threw         *string
	}
	raw, err := os.ReadFile("library/testdata/jsonschema-validate.json")
	require.NoError(t, err)
	require.NoError(t, json.Unmarshal(raw, &cases))
	told := map[string]int{}
	for _, c := range cases {
		if c.Threw != nil {
			continue
		}
		s, err := jsonschema.Compile(c.Schema, library.Judge)
		require.NoError(t, err)
		told[hold(t, s, c.Schema, c.Value)]++
	}
	require.LessOrEqual(t, told["unsure"], 1, "%v", told)
}
