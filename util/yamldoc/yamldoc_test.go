package yamldoc

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// deviations lists the vectors where we deliberately differ from the original.
var deviations = map[string]string{
	".inf":                   "JSON has no infinity",
	".nan":                   "JSON has no NaN",
	"1e400":                  "overflows to infinity, which JSON does not have",
	"1.7976931348623159e308": "overflows to infinity, which JSON does not have",
	"!!binary aGk=":          "bytes are not a JSON value",
	"<<: {a: 1}\nb: 2":       "a merge key is an error: half of its readers expect a merge, half a key",
	"? [a, b]\n: 1":          "a JSON key is a string; \"[ a, b ]\" is nothing that anyone means",
}

func TestVectors(t *testing.T) {
	t.Parallel()
	raw, err := os.ReadFile("testdata/yaml.json")
	require.NoError(t, err)
	var cases []struct {
		YAML  string
		JSON  any
		Error string
	}
	require.NoError(t, json.Unmarshal(raw, &cases))
	for _, c := range cases {
		doc, err := Parse([]byte(c.YAML), Bounds{})
		if _, ok := deviations[c.YAML]; ok || c.Error != "" {
			require.Error(t, err, c.YAML)
			continue
		}
		require.NoError(t, err, c.YAML)
		want, err := json.Marshal(c.JSON)
		require.NoError(t, err)
		got, err := json.Marshal(doc.Root.Value())
		require.NoError(t, err)
		require.JSONEq(t, string(want), string(got), c.YAML)
	}
}

// BenchmarkParse parses a workflow of 300 lines, which should take at most 5 ms.
func BenchmarkParse(b *testing.B) {
	var text strings.Builder
	text.WriteString("name: big\nroles:\n")
	for i := range 30 {
		fmt.Fprintf(&text, `  role%d:
    description: "Plans the work"
    goal: You are a planner, and you plan.
    capabilities: [planning, issue-analysis]
    procedure: |
      Read the issue.

      1. Think: what is wrong?
    output: { kind: summary, $status: { const: ready } }
    frontmatter:
      oneOf: [{ properties: { plan: { type: string } }, required: [plan] }]
`, i)
	}
	b.SetBytes(int64(text.Len()))
	for b.Loop() {
		if _, err := Parse([]byte(text.String()), Bounds{}); err != nil {
			b.Fatal(err)
		}
	}
}
