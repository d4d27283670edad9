package extract

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func roleOf(t *testing.T, schema string) Role {
	t.Helper()
	var v any
	require.NoError(t, json.Unmarshal([]byte(schema), &v))
	return role(t, v)
}

const (
	flat     = `{"type":"object","properties":{"$status":{"enum":["done","failed"]},"note":{"type":"string"}},"required":["$status"],"additionalProperties":false}`
	variants = `{"oneOf":[
		{"properties":{"$status":{"const":"ready"},"plan":{"type":"string"}},"required":["$status","plan"],"additionalProperties":false},
		{"properties":{"$status":{"const":"blocked"},"reason":{"type":"string"}},"required":["$status","reason"],"additionalProperties":false}]}`
	routing = `{"type":"object","properties":{"status":{"type":"string"},"confidence":{"enum":["low","high"]}}}`
)

func TestFields(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		schema, block string
		want          map[string]any
	}{
		"unknown fields are dropped":       {flat, "$status: done\nextra: 1\nnested: {a: b}", map[string]any{"$status": "done"}},
		"standard fields are always there": {flat, "$status: done\nstatus: done\nnext: x\nconfidence: 0.9\nartifacts: [a.go]\nscope: role", map[string]any{"$status": "done"}},
		"empty standard fields are none":   {flat, "$status: done\nnext:\nartifacts: ~", map[string]any{"$status": "done"}},
		"the schema says what they are":    {routing, "status: done\nconfidence: high\nnext: x", map[string]any{"status": "done", "confidence": "high"}},
		"a standard word in other letters": {routing, "status: DONE ", map[string]any{"status": "done"}},
		"any other word as it is":          {routing, "status: Shipped", map[string]any{"status": "Shipped"}},
		"a word that the schema wants so":  {`{"properties":{"status":{"const":"DONE"}}}`, "status: DONE", map[string]any{"status": "DONE"}},
		"fields of another variant":        {variants, "$status: blocked\nreason: r\nplan: p", map[string]any{"$status": "blocked", "reason": "r"}},
		"fields of another of several":     {`{"oneOf":[{"properties":{"$status":{"enum":["a","b"]},"x":{}},"additionalProperties":false},{"properties":{"$status":{"const":"c"},"y":{}}}]}`, "$status: b\nx: 1\ny: 2", map[string]any{"$status": "b", "x": int64(1)}},
		"fields by pattern":                {`{"patternProperties":{"^x-":{"type":"integer"}}}`, "x-a: 1\ny: 2", map[string]any{"x-a": int64(1)}},
		"more properties are asked for":    {`{"properties":{"a":{}},"additionalProperties":{"type":"integer"}}`, "a: x\nb: 2", map[string]any{"a": "x", "b": int64(2)}},
		"fields of parts":                  {`{"allOf":[{"properties":{"a":{}}}],"if":{"properties":{"b":{}}},"then":{"required":["c"]}}`, "a: 1\nb: 2\nc: 3\nd: 4", map[string]any{"a": int64(1), "b": int64(2), "c": int64(3)}},
		"a schema that names nothing":      {`{"type":"object"}`, "$status: x\nstatus: y\nfoo: 1", map[string]any{"$status": "x", "status": "y"}},
		"a variant beside common fields":   {`{"properties":{"common":{}},"anyOf":[{"properties":{"k":{"const":1},"a":{"type":"string"}}},{"properties":{"k":{"const":2},"b":{"type":"string"},"a":{"type":"null"}}}]}`, "k: 1\na: x\nb: 7\ncommon: c", map[string]any{"k": int64(1), "a": "x", "b": int64(7), "common": "c"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := Text(t.Context(), "---\n"+c.block+"\n---\n\nThe work.\n", roleOf(t, c.schema))
			require.NoError(t, err)
			require.Equal(t, Output{Value: any(c.want), Body: "The work.\n"}, out)
		})
	}
}

func TestInvalidAnswers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ schema, text string }{
		"no block":        {flat, "All done."},
		"a block later":   {flat, "Here it is:\n\n---\n$status: dne\n---\n"},
		"never closed":    {flat, "---\n$status: done\n"},
		"broken YAML":     {flat, "---\n$status: done\nnote: a: b\n---\n"},
		"field by field":  {flat, "---\n$status: dne\nnote: 7\n---\n"},
		"missing":         {variants, "---\n$status: ready\nreason: r\n---\n"},
		"standard fields": {flat, "---\n$status: done\nconfidence: high\nartifacts: a.go\nnext: [x]\nscope: 1\n---\n"},
		"too sure":        {flat, "---\n$status: done\nconfidence: 90\n---\n"},
		"wrong kind":      {`{"type":"array"}`, "---\nstatus: x\n---\n"},
		"no reason":       {flat, "---\n$status: $SUSPEND\n---\n"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := Text(t.Context(), c.text, roleOf(t, c.schema))
			prosetest.Error(t, err)
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid)
		})
	}
}

// Some models address the user before their block.
func TestPreamble(t *testing.T) {
	t.Parallel()
	for _, before := range []string{"Sure! Here it is:\n\n", "Done.\n", "\ufeffI have\r\nread it.\r\n"} {
		out, err := Text(t.Context(), before+"---\n$status: done\nnote: n\n---\n\nThe work.\n\n---\n\nMore.\n", roleOf(t, flat))
		require.NoError(t, err, before)
		require.Equal(t, Output{Value: map[string]any{"$status": "done", "note": "n"}, Body: "The work.\n\n---\n\nMore.\n"}, out)
	}
	for _, text := range []string{"A\n---\nB\n---\n", "A\n---\n---\n", "A ---\n$status: done\n---\n", "A\n---\n$status: done\n"} {
		_, err := Text(t.Context(), text, roleOf(t, flat))
		prosetest.Error(t, err, text)
	}
}

// Every role can suspend, regardless of its schema.
func TestSuspend(t *testing.T) {
	t.Parallel()
	want := protocol.NewSuspend("Which branch?")
	value := map[string]any{"$status": "$SUSPEND", "reason": "Which branch?"}
	for _, schema := range []string{flat, variants, `{"type":"array"}`, `{"type":"object"}`} {
		r := roleOf(t, schema)
		for _, block := range []string{
			"$status: $SUSPEND\nreason: Which branch?", "$status: \"$SUSPEND\"\nreason: Which branch?\nplan: p\nconfidence: high",
			"status: $SUSPEND\nreason: Which branch?",
		} {
			out, err := Text(t.Context(), "---\n"+block+"\n---\nbody", r)
			require.NoError(t, err, block)
			require.Equal(t, Output{Value: value, Suspend: &want, Body: "body"}, out)
		}
		out, err := Value(t.Context(), value, r)
		require.NoError(t, err)
		require.Equal(t, Output{Value: value, Suspend: &want}, out)
		_, err = Value(t.Context(), map[string]any{"$status": "$SUSPEND", "reason": " "}, r)
		prosetest.Error(t, err)
	}
}

func TestValue(t *testing.T) {
	t.Parallel()
	type output struct {
		Status string `json:"$status"`
		Count  int    `json:"count"`
	}
	r := roleOf(t, `{"type":"object","properties":{"$status":{"type":"string"},"count":{"type":"integer"}},"required":["$status"]}`)
	out, err := Value(t.Context(), output{"done", 3}, r)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"$status": "done", "count": int64(3)}, out.Value)

	out, err = Value(t.Context(), map[string]any{"$status": "x", "count": 3.0, "big": 1e300, "list": []int{1}}, r)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"$status": "x", "count": int64(3), "big": 1e300, "list": []any{int64(1)}}, out.Value, "taken as it is")

	_, err = Value(t.Context(), map[string]any{"count": 1.5}, r)
	prosetest.Error(t, err)
	_, err = Value(t.Context(), func() {}, r)
	prosetest.Error(t, err)
	_, err = Value(t.Context(), json.Number("1e999"), roleOf(t, `{}`))
	prosetest.Error(t, err)
}

// FuzzText checks that the extracted output always matches the schema.
func FuzzText(f *testing.F) {
	f.Add("---\n$status: ready\nplan: p\nreason: r\n---\nbody")
	f.Add("```yaml\n---\n$status: blocked\n---\n```")
	f.Add("---\nstatus: $SUSPEND\nreason: x\n---")
	f.Add("---\n$status: [ready]\nconfidence: {}\n---")
	f.Fuzz(func(t *testing.T, text string) {
		for _, schema := range []string{flat, variants, routing} {
			r := roleOf(t, schema)
			out, err := Text(t.Context(), text, r)
			if err != nil {
				var invalid *InvalidError
				require.ErrorAs(t, err, &invalid)
				require.NotEmpty(t, strings.TrimSpace(err.Error()))
				continue
			}
			if out.Suspend != nil {
				require.NoError(t, out.Suspend.Validate())
				continue
			}
			fits, err := r.fits(t.Context(), out.Value)
			require.NoError(t, err)
			require.True(t, fits)
		}
	})
}

// A role without a schema answers with any text.
func TestAnswerOfARoleWithoutSchema(t *testing.T) {
	t.Parallel()
	role, err := NewRole(protocol.AnswerSchema())
	require.NoError(t, err)
	for text, want := range map[string]string{
		"I fixed it.\n":                              "I fixed it.",
		"---\nnote: of mine\n---\nand more":          "---\nnote: of mine\n---\nand more",
		"---\nanswer: as data\n---\n":                "as data",
		"--- no block: [\n":                          "--- no block: [",
		"# Report\n\n---\n$status: done\n---\n\nend": "# Report\n\n---\n$status: done\n---\n\nend",
	} {
		out, err := Text(t.Context(), text, role)
		require.NoError(t, err, "%q", text)
		require.Equal(t, map[string]any{protocol.AnswerField: want}, out.Value)
	}
	out, err := Text(t.Context(), "---\n$status: $SUSPEND\nreason: which one?\n---\n", role)
	require.NoError(t, err)
	require.Equal(t, "which one?", out.Suspend.Reason)
	_, err = Text(t.Context(), " \n", role)
	prosetest.Error(t, err)
}
