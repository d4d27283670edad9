package protocol

import (
	"encoding/json"
	"flag"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

var update = flag.Bool("update", false, "rewrite the limits in the schemas for editors")

// The JSON schemas for editors include every limit.
func TestEditorsKnowAllLimits(t *testing.T) {
	t.Parallel()
	block := regexp.MustCompile(`(?s)(\n    "limits": \{.*?\n      "properties": )\{.*?\n      \}`)
	for _, file := range []EditorFile{EditWorkflow, EditConfig} {
		path := "editor/" + string(file) + ".json"
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		require.Len(t, block.FindAll(text, -1), 1, path)
		var properties []string
		for _, x := range AllLimits() {
			data, err := json.MarshalIndent(editorLimit(x, file == EditConfig), "        ", "  ")
			require.NoError(t, err)
			properties = append(properties, `        "`+x.Key+`": `+string(data))
		}
		if file == EditConfig {
			data, err := json.MarshalIndent(json.RawMessage(editorPerDay), "        ", "  ")
			require.NoError(t, err)
			properties = append(properties, `        "perDay": `+string(data))
		}
		want := block.ReplaceAllString(string(text), "${1}{\n"+strings.ReplaceAll(strings.Join(properties, ",\n"), "$", "$$")+"\n      }")
		if *update {
			require.NoError(t, os.WriteFile(path, []byte(want), 0o644))
			continue
		}
		require.Equal(t, want, string(text), "%s: go test ./protocol -run TestEditors -update writes it", path)
	}
}

// editorPerDay is the schema of limits that only a config has.
const editorPerDay = `{
	"description": "What the agents of all threads of the home may cost until midnight",
	"type": ["object", "null"],
	"additionalProperties": false,
	"properties": {
		"costUsd": { "type": ["number", "null"], "minimum": 0, "description": "US dollars" },
		"tokens": { "type": ["integer", "null"], "minimum": 0, "description": "Tokens read and written" }
	}
}`

// editorLimit returns the schema of a limit. In config.yaml, 0 selects the default, and times may be
// variables.
func editorLimit(x Limit, config bool) any {
	least := 1
	if config {
		least = 0
	}
	property := struct {
		Type        []string `json:"type"`
		Minimum     *int     `json:"minimum,omitempty"`
		Above       *int     `json:"exclusiveMinimum,omitempty"`
		Description string   `json:"description"`
		Pattern     string   `json:"pattern,omitempty"`
	}{Description: x.Help}
	switch {
	case x.Unit == UnitMs && config:
		property.Type = []string{"string", "number", "boolean", "null"}
		property.Pattern = `^$|\$\{|^\+?([0-9.]+(ns|us|µs|μs|ms|s|m|h))+$`
	case x.Unit == UnitMs:
		property.Type = []string{"string", "null"}
	case x.Unit == UnitDollars && config:
		property.Type, property.Minimum = []string{"number", "null"}, &least
	case x.Unit == UnitDollars:
		property.Type, property.Above = []string{"number", "null"}, new(int)
	default:
		property.Type, property.Minimum = []string{"integer", "null"}, &least
	}
	return property
}
