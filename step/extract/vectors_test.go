package extract

import (
	"encoding/json"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/jsonschema"
)

// deviations lists the texts that we handle differently from the original, with our result (nil: an error)
// and the reason.
var deviations = map[string]struct {
	value map[string]any
	why   string
}{
	"---\r\n$status: ready\r\nplan: x\r\n---\r\nB": {map[string]any{"$status": "ready", "plan": "x"}, "CR LF is a line end, not part of a value"},
	"---\nfoo: 1\n---\nb":                          {map[string]any{}, "a status that nobody wrote is absent, not null"},
	"---\nmail: a@b.c\n---\n":                      {map[string]any{"mail": "a@b.c"}, "the original crashes on the format, we assert it"},
	"---\nv: @bad\n---\n":                          {nil, "broken YAML is an error; the original stores an empty object"},
	"---\nv: `bad`\n---\n":                         {nil, "broken YAML is an error; the original stores an empty object"},
	"---\nv: a\n v2: b\n---\n":                     {nil, "broken YAML is an error; the original stores an empty object"},
	"---\nv: 1e400\nw: 1.0e+3\n---\n":              {nil, "JSON has no infinity; the original stores one"},

	"---\n$status: done\ncount: 12345678901234567890\n---\n": {nil, "the number would be rounded; the original stores another one"},
}

func TestFastPathVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/frontmatter-fastpath.json")
	require.NoError(t, err)
	var file struct {
		Schemas map[string]any
		Cases   []struct {
			Schema, Raw string
			Result      *struct {
				Body        string
				Frontmatter map[string]any
			}
		}
	}
	require.NoError(t, json.Unmarshal(raw, &file))
	for _, c := range file.Cases {
		out, err := Text(t.Context(), c.Raw, role(t, file.Schemas[c.Schema]))
		var want map[string]any
		if c.Result != nil {
			want = c.Result.Frontmatter
		}
		d, deviates := deviations[c.Raw]
		if deviates {
			want = d.value
		}
		if want == nil {
			var invalid *InvalidError
			require.ErrorAs(t, err, &invalid, "%q", c.Raw)
			continue
		}
		require.NoError(t, err, "%q", c.Raw)
		got, err := json.Marshal(out.Value)
		require.NoError(t, err)
		expected, err := json.Marshal(want)
		require.NoError(t, err)
		require.JSONEq(t, string(expected), string(got), "%q", c.Raw)
		if !deviates {
			require.Equal(t, c.Result.Body, out.Body, "%q", c.Raw)
		}
	}
}

func role(t *testing.T, schema any) Role {
	t.Helper()
	compiled, err := jsonschema.Compile(schema)
	require.NoError(t, err)
	return Role{Schema: schema, Compiled: compiled}
}
