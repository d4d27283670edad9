package prompt_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/step/prompt"
	"github.com/united-workforce/uwf/util/prosetest"
)

// A model copies the example, so each of its lines must match the schema.
func TestFormatExamples(t *testing.T) {
	t.Parallel()
	cases := []struct {
		name, schema string
		want         []string
	}{
		{"routing field first, required before optional",
			`{"properties":{"z":{"type":"string"},"a":{"type":"number"},"$status":{"enum":["done","failed"]}},"required":["z","$status"]}`,
			[]string{"$status: done  # required | done | failed\nz: <string>  # required\na: <number>\n"}},
		{"constants that YAML would read as something else are quoted",
			`{"properties":{"a":{"const":"true"},"b":{"const":"1.0"},"c":{"const":"a: b"},"d":{"const":null},"e":{"const":"_"}}}`,
			[]string{"a: \"true\"  # fixed value\nb: \"1.0\"  # fixed value\nc: \"a: b\"  # fixed value\nd: null  # fixed value\ne: _  # fixed value\n"}},
		{"null is optional, not the type",
			`{"properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]},"b":{"type":["integer","null"]}}}`,
			[]string{"a: <string>  # or null\nb: <number>  # or null\n"}},
		{"lists and objects show their inside",
			`{"properties":{"files":{"type":"array","items":{"type":"object","properties":{"path":{"type":"string"},"line":{"type":"integer"}},"required":["path"]}},
			  "tags":{"type":"array","items":{"enum":["x","y"]}},"any":{"type":"array"},"meta":{"type":"object"},"where":{"properties":{"dir":{"type":"string"}}}}}`,
			[]string{
				"any:\n  - <item>\n", "files:\n  - path: <string>  # required\n    line: <number>\n", "meta: <object>\n",
				"tags:\n  - x  # x | y\n", "where:\n  dir: <string>\n",
			}},
		{"limits and descriptions are told",
			`{"properties":{"plan":{"type":"string","format":"ocas_ref","description":"Where\nit is"},"n":{"type":"integer","minimum":1,"maximum":5},"id":{"type":"string","pattern":"^a$"}}}`,
			[]string{"plan: <hash>\n", "  - `plan`: Where it is; format ocas_ref", "  - `n`: minimum 1; maximum 5", "  - `id`: pattern `^a$`"}},
		{"a variant of several statuses is one for each",
			`{"oneOf":[{"properties":{"$status":{"enum":["a","b"]},"x":{"type":"string"}},"required":["$status"]},{"properties":{"$status":{"const":"c"}}}]}`,
			[]string{"$status: a  # required | fixed value\nx: <string>\n", "$status: b  # required | fixed value\nx: <string>\n", "$status: c  # fixed value\n"}},
		{"fields beside the variants belong to each",
			`{"properties":{"$status":{"type":"string"},"note":{"type":"string"}},"required":["$status"],
			  "oneOf":[{"properties":{"$status":{"const":"a"}}},{"properties":{"$status":{"const":"b"},"why":{"type":"string"}},"required":["why"]}]}`,
			[]string{
				"### When `$status: a`\n\n```\n---\n$status: a  # required | fixed value\nnote: <string>\n---",
				"### When `$status: b`\n\n```\n---\n$status: b  # required | fixed value\nwhy: <string>  # required\nnote: <string>\n---",
			}},
		{"variants that nothing tells apart are merged",
			`{"anyOf":[{"properties":{"s":{"const":"a"},"x":{"type":"string"}},"required":["s"]},{"properties":{"s":{"enum":["b","c"]}}}]}`,
			[]string{"s: a  # required | a | b | c\nx: <string>\n"}},
		{"allOf and conditions count too",
			`{"allOf":[{"properties":{"a":{"type":"boolean"}},"required":["a"]}],"if":{},"then":{"properties":{"b":{"type":"string"}},"required":["b"]}}`,
			[]string{"a: true  # required | true | false\nb: <string>\n"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var schema any
			require.NoError(t, json.Unmarshal([]byte(c.schema), &schema))
			text := prompt.FormatInstruction(schema)
			for _, want := range c.want {
				require.Contains(t, text, want)
			}
			require.Equal(t, text, prompt.FormatInstruction(schema))
		})
	}
}

// Schemas are untrusted: none of them can crash an agent.
func FuzzFormatInstruction(f *testing.F) {
	f.Add(`{"oneOf":[{"properties":{"a":{"const":1}}},{"properties":{"a":{"const":2}}}]}`)
	f.Add(`{"properties":{"a":true,"b":{"type":["string"]},"c":{"type":"array","items":[]}},"required":[1]}`)
	f.Add(`{"anyOf":[1,null],"enum":[],"then":{"then":{}}}`)
	f.Add(`[]`)
	f.Fuzz(func(t *testing.T, text string) {
		var schema any
		if json.Unmarshal([]byte(text), &schema) != nil {
			return
		}
		require.NotEmpty(t, prompt.FormatInstruction(schema))
		require.NotEmpty(t, prompt.Correction("x", schema))
	})
}

// The prompt of a role without a schema doesn't ask for a block.
func TestFormatOfAText(t *testing.T) {
	t.Parallel()
	text := prompt.FormatInstruction(protocol.AnswerSchema())
	prosetest.Text(t, text)
	require.Contains(t, text, "$SUSPEND")
}
