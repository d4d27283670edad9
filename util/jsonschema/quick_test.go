package jsonschema_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/jsonschema"
	"github.com/united-workforce/uwf/util/jsonschema/library"
)

// What the quick check accepts, the library accepts: for schemas and values made
// of the same few parts, so that many of them fit.
func TestQuickIsSound(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	accepted, valid := 0, 0
	for range 3000 {
		schema := randomSchema(r, 3)
		if len(jsonschema.Check(schema)) > 0 {
			continue
		}
		s, err := jsonschema.Compile(schema, library.Judge)
		if err != nil {
			continue // such as an enum that has a value twice
		}
		for range 20 {
			value := randomValue(r, 4)
			fits := len(ask(t, s, value)) == 0
			if fits {
				valid++
			}
			if s.Quick(value) {
				accepted++
				require.True(t, fits, "schema %v, value %v", schema, value)
			}
		}
	}
	require.Greater(t, accepted, valid/2, "it accepts most of what is valid")
}

// FuzzQuickIsSound is the same for what a fuzzer makes up.
func FuzzQuickIsSound(f *testing.F) {
	for _, seed := range [][2]string{
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":0}},"required":["a"],"additionalProperties":false}`, `{"a":1}`},
		{`{"anyOf":[{"type":"string","format":"ocas_ref"},{"type":"null"}]}`, `null`},
		{`{"enum":["a",1,null]}`, `1.0`}, {`{"items":{"const":"x"}}`, `["x"]`}, {`{"additionalProperties":{"type":"number"}}`, `{"a":1e300}`},
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
		if problems := ask(t, s, value); s.Quick(value) && len(problems) > 0 {
			t.Fatalf("schema %s, value %s: %v", schemaText, valueText, problems)
		}
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
		s, err := jsonschema.Compile(parse(t, string(protocol.SchemaJSON(kind))), nil)
		require.NoError(t, err)
		require.True(t, s.Quick(integers(parse(t, text))), kind)
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
	return pick(r, any("x"), any("a"), any("0123456789ABC"), any(int64(0)), any(int64(3)), any(-1.5), any(2.0), any(true), any(false), any(nil), any(math.Inf(1)))
}

func randomSchema(r *rand.Rand, depth int) map[string]any {
	s := map[string]any{}
	for range r.IntN(4) {
		name := pick(r, "type", "enum", "const", "format", "required", "title", "minimum", "maxLength", "properties", "additionalProperties", "items", "anyOf", "oneOf", "not", "patternProperties")
		switch name {
		case "type":
			s[name] = pick(r, any("string"), any("integer"), any("number"), any("object"), any("array"), any([]any{"null", "boolean"}))
		case "enum":
			s[name] = []any{randomValue(r, 0), randomValue(r, 1)}
		case "const":
			s[name] = randomValue(r, 1)
		case "format":
			s[name] = pick(r, "ocas_ref", "date")
		case "required":
			s[name] = []any{pick(r, "a", "b")}
		case "title":
			s[name] = "t"
		case "minimum", "maxLength":
			s[name] = int64(1)
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
		return map[string]any{"^a": randomSchema(r, depth)}
	case "anyOf", "oneOf":
		return []any{randomSchema(r, depth), randomSchema(r, depth)}
	case "additionalProperties":
		if r.IntN(2) == 0 {
			return r.IntN(2) == 0
		}
	}
	return randomSchema(r, depth)
}
