package extract_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/step/extract"
)

func TestDefaults(t *testing.T) {
	t.Parallel()
	const flat = `{"type":"object","required":["n"],"properties":{"n":{"type":"integer","minimum":1,"default":2},"yes":{"type":"boolean","default":true},
		"bad":{"type":"string","default":5},"none":{"type":"string"},"deep":{"type":"object","properties":{"x":{"default":1}}}}}`
	const variants = `{"type":"object","properties":{"why":{"type":"string","default":"?"}},"oneOf":[
		{"properties":{"$status":{"enum":["a","b"]},"n":{"type":"integer","default":1}},"required":["$status"]},
		{"properties":{"$status":{"const":"c"},"n":{"type":"integer","default":3},"m":{"default":[1]}},"required":["$status"]}]}`
	const strict = `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string","default":"x"}},"not":{"required":["a","b"]}}`
	for name, c := range map[string]struct{ schema, in, want string }{
		"absent":              {flat, `{}`, `{"n":2,"yes":true}`},
		"given":               {flat, `{"n":7,"yes":false,"deep":{}}`, `{"n":7,"yes":false,"deep":{}}`},
		"one variant":         {variants, `{"$status":"b"}`, `{"$status":"b","n":1,"why":"?"}`},
		"another one":         {variants, `{"$status":"c","n":9}`, `{"$status":"c","n":9,"m":[1],"why":"?"}`},
		"a default too many":  {strict, `{"a":"y"}`, `{"a":"y"}`},
		"no object":           {`{"type":["object","integer"],"properties":{"a":{"default":1}}}`, `5`, `5`},
		"a list is no object": {`{"type":"array","default":[]}`, `[]`, `[]`},
	} {
		var schema, in any
		require.NoError(t, json.Unmarshal([]byte(c.schema), &schema))
		require.NoError(t, json.Unmarshal([]byte(c.in), &in))
		role, err := extract.NewRole(schema)
		require.NoError(t, err, name)
		out, err := extract.Value(t.Context(), in, role)
		require.NoError(t, err, name)
		got, err := json.Marshal(out.Value)
		require.NoError(t, err)
		require.JSONEq(t, c.want, string(got), name)
		var again any
		require.NoError(t, json.Unmarshal([]byte(c.in), &again))
		require.Equal(t, again, in, "what is given stays as it is")
	}
	var schema any
	require.NoError(t, json.Unmarshal([]byte(flat), &schema))
	role, err := extract.NewRole(schema)
	require.NoError(t, err)
	out, err := extract.Text(t.Context(), "---\nnone: x\n---\nBody.", role)
	require.NoError(t, err)
	require.Equal(t, map[string]any{"none": "x", "n": int64(2), "yes": true}, out.Value)
	out, err = extract.Text(t.Context(), "---\n$status: $SUSPEND\nreason: why\n---\n", role)
	require.NoError(t, err)
	require.NotContains(t, out.Value, "n", "who asks has not answered")
	_, err = extract.Text(t.Context(), "no block", role)
	require.Error(t, err, "defaults are no answer")
}
