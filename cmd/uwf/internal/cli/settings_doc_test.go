package cli

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// schemaNode is the JSON Schema of one config key.
type schemaNode struct {
	Type       any                        `json:"type"`
	Pattern    string                     `json:"pattern"`
	Enum       []any                      `json:"enum"`
	Properties map[string]json.RawMessage `json:"properties"`
	Additional json.RawMessage            `json:"additionalProperties"`
	Items      *schemaNode                `json:"items"`
	Ref        string                     `json:"$ref"`
	Defs       map[string]json.RawMessage `json:"$defs"`
}

// configKeys collects all keys of config.yaml, each with a description of its type.
func configKeys(t *testing.T, raw json.RawMessage, path string, into map[string]string) {
	t.Helper()
	var n schemaNode
	require.NoError(t, json.Unmarshal(raw, &n), path)
	if name, ok := strings.CutPrefix(n.Ref, "#/$defs/"); ok {
		var root schemaNode
		require.NoError(t, json.Unmarshal(protocol.EditorSchema(protocol.EditConfig), &root))
		if above, key := strings.TrimSuffix(path, name), name; key == "sandbox" && above != "" {
			into[path] = "keys of `sandbox`"
			return
		}
		configKeys(t, root.Defs[name], path, into)
		return
	}
	for name, child := range n.Properties {
		configKeys(t, child, strings.TrimPrefix(path+"."+name, "."), into)
	}
	var free struct {
		Type any
		Ref  any `json:"$ref"`
	}
	switch {
	case len(n.Properties) > 0:
	case len(n.Additional) > 0 && json.Unmarshal(n.Additional, &free) == nil && (free.Type != nil || free.Ref != nil) && !strings.HasSuffix(path, ".env"):
		configKeys(t, n.Additional, path+".<name>", into)
	default:
		into[path] = inWords(n)
	}
}

func inWords(n schemaNode) string {
	types, _ := n.Type.([]any)
	if one, ok := n.Type.(string); ok {
		types = []any{one}
	}
	switch {
	case len(n.Enum) > 0:
		var values []string
		for _, v := range n.Enum {
			if text, ok := v.(string); ok && text != "" {
				values = append(values, "`"+text+"`")
			}
		}
		return strings.Join(values, ", ")
	case strings.Contains(n.Pattern, "ns|us"):
		return "duration"
	case slices.Contains(types, "array") && slices.Contains(types, "string"):
		return "`all`, `none` or a list of hosts"
	case slices.Contains(types, "array"):
		return "list of strings"
	case slices.Contains(types, "object"):
		return "map of strings"
	case slices.Contains(types, "string"):
		return "string"
	case slices.Contains(types, "boolean"):
		return "boolean"
	}
	return types[0].(string) // integer, number
}

// TestConfigReference checks that docs/config.md lists every key of config.yaml with its type,
// and no other key.
func TestConfigReference(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	configKeys(t, protocol.EditorSchema(protocol.EditConfig), "", want)
	require.Greater(t, len(want), 40)
	got := map[string]string{}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`|]+)` \\| ([^|]+) \\| [^|]+ \\| [^|]+ \\|$").FindAllStringSubmatch(document(t, "config.md"), -1) {
		got[row[1]] = row[2]
	}
	require.Equal(t, want, got)
}

// variable matches names of environment variables in Go: ours anywhere, others where they are read.
var variable = regexp.MustCompile(`\b((?:UWF|OCAS)_[A-Z0-9_]*[A-Z0-9])\b|(?:\.Get\(|variable: |env\[)"([A-Z][A-Z0-9_]+)"`)

// notForPeople lists variables of our own tests, which some packages contain because tests of others use
// them.
var notForPeople = []string{"UWF_EXTERNALTEST_SCRIPT"}

// TestEnvironmentReference checks that docs/config.md lists every variable that the programs
// read, and no other of uwf.
func TestEnvironmentReference(t *testing.T) {
	t.Parallel()
	read := map[string]string{}
	root := filepath.Join("..", "..", "..", "..")
	for _, file := range append(goFiles(t, root), filepath.Join(root, "packaging", "install.sh")) {
		if strings.HasPrefix(file, filepath.Join(root, "internal")+string(filepath.Separator)) {
			continue // our test tools
		}
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		for _, m := range variable.FindAllStringSubmatch(string(text), -1) {
			if name := m[1] + m[2]; !slices.Contains(notForPeople, name) {
				read[name] = file
			}
		}
	}
	for _, a := range protocol.Adapters() { // their names are composed, see cliagent.binVariable
		if name := strings.ToUpper(strings.ReplaceAll(strings.TrimPrefix(a.Name, protocol.AgentPrefix), "-", "_")); a.Program != "" {
			read["UWF_"+name+"_BIN"] = a.Name
		}
	}
	text := document(t, "config.md")
	for _, name := range slices.Sorted(maps.Keys(read)) {
		assert.True(t, strings.Contains(text, "`"+name+"`"), "docs/config.md lacks %s, which %s reads", name, read[name])
	}
	for _, m := range regexp.MustCompile("`((?:UWF|OCAS)_[A-Z0-9_]+)`").FindAllStringSubmatch(text, -1) {
		assert.True(t, read[m[1]] != "", "docs/config.md has %s, which nothing reads", m[1])
	}
	require.Greater(t, len(read), 30)
}

// document returns a page of docs/ with LF line endings.
func document(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "docs", name))
	require.NoError(t, err)
	return strings.ReplaceAll(string(text), "\r\n", "\n")
}
