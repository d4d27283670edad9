package jsonschema_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	upstream "github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/internal/thirdparty/jsonschema"
)

const upstreamModule = "github.com/santhosh-tekuri/jsonschema/v5"

// TestCopy holds the copy to the original: its files are those of the module that
// go.mod requires, with testdata/lazy.diff applied.
func TestCopy(t *testing.T) {
	t.Parallel()
	dir := originalFiles(t)
	diff, err := filepath.Abs("testdata/lazy.diff")
	require.NoError(t, err)
	apply := exec.CommandContext(t.Context(), "git", "apply", "-p0", diff)
	// Without a ceiling, git would look for a repository above and skip the files.
	apply.Dir, apply.Env = dir, append(os.Environ(), "GIT_CEILING_DIRECTORIES="+filepath.Dir(dir))
	out, err := apply.CombinedOutput()
	require.NoError(t, err, "%s", out)

	want, err := os.ReadDir(dir)
	require.NoError(t, err)
	var names []string
	for _, entry := range want {
		names = append(names, entry.Name())
		require.Equal(t, read(t, filepath.Join(dir, entry.Name())), read(t, entry.Name()), entry.Name())
	}
	require.Contains(t, names, "LICENSE")
	require.Contains(t, names, "draft.go")
	ours, err := filepath.Glob("*.go")
	require.NoError(t, err)
	for _, name := range ours {
		if !strings.HasSuffix(name, "_test.go") {
			require.Contains(t, names, name, "a file that the original does not have")
		}
	}
}

// originalFiles returns a directory with the original's sources and licence.
func originalFiles(t *testing.T) string {
	t.Helper()
	found, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Dir}}", upstreamModule).Output()
	require.NoError(t, err)
	original, dir := strings.TrimSpace(string(found)), t.TempDir()
	entries, err := os.ReadDir(original)
	require.NoError(t, err)
	for _, entry := range entries {
		name := entry.Name()
		isSource := strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, "_test.go")
		if name == "LICENSE" || isSource {
			require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(read(t, filepath.Join(original, name))), 0o600))
		}
	}
	return dir
}

func read(t *testing.T, name string) string {
	t.Helper()
	data, err := os.ReadFile(name)
	require.NoError(t, err)
	return string(data)
}

// schemas are valid and invalid ones, for every draft.
var schemas = []string{
	`true`, `false`, `{}`, `3`, `{"type": "nonsense"}`, `{"minLength": -1}`, `{"required": "a"}`, `{"pattern": "("}`,
	`{"type": "string", "minLength": 2, "pattern": "^a"}`,
	`{"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}, "additionalProperties": false}`,
	`{"oneOf": [{"type": "string"}, {"const": 3}], "not": {"enum": ["ab", 1]}}`, `{"enum": ["x", 1]}`,
	`{"$ref": "#/definitions/a", "definitions": {"a": {"format": "date-time"}}}`, `{"$ref": "#/nowhere"}`,
	`{"type": "array", "items": [{"type": "string"}], "additionalItems": false, "contains": {"const": "ab"}}`,
	`{"prefixItems": [{"type": "string"}], "items": false, "unevaluatedItems": false}`,
	`{"if": {"type": "string"}, "then": {"format": "email"}, "else": {"minimum": 2}}`,
	`{"$defs": {"a": {"$dynamicAnchor": "x"}}, "dependentRequired": {"a": ["b"]}, "unevaluatedProperties": false}`,
	`{"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 2, "exclusiveMinimum": true}`,
	`{"$schema": "http://json-schema.org/draft-06/schema#", "minimum": 2, "exclusiveMinimum": true}`,
	`{"$schema": "https://json-schema.org/draft/2019-09/schema", "$recursiveAnchor": true, "maxContains": 1}`,
	`{"$schema": "https://json-schema.org/draft/2020-12/schema", "$ref": "https://json-schema.org/draft/2020-12/schema"}`,
	`{"$ref": "http://json-schema.org/draft-07/schema#"}`, `{"$schema": "mem:///unknown"}`,
}

var values = []string{
	`null`, `true`, `1`, `2.5`, `-1`, `""`, `"ab"`, `"%d"`, `"a@b.c"`, `"2020-01-01T00:00:00Z"`, `[]`, `["ab"]`, `["ab", "ab"]`, `[1, 2]`,
	`{}`, `{"a": 1}`, `{"a": "x", "b": 2}`, `{"type": "nonsense"}`, `{"minLength": -1}`, `{"$id": "#a#"}`, `{"exclusiveMinimum": true}`,
}

// TestSameAsUpstream holds every answer of the copy to the original's, for all drafts at
// once: whichever meta-schema is asked for first, and by how many.
func TestSameAsUpstream(t *testing.T) {
	t.Parallel()
	drafts := []struct {
		ours   *jsonschema.Draft
		theirs *upstream.Draft
	}{
		{jsonschema.Draft7, upstream.Draft7}, {jsonschema.Draft4, upstream.Draft4}, {jsonschema.Draft6, upstream.Draft6},
		{jsonschema.Draft2020, upstream.Draft2020}, {jsonschema.Draft2019, upstream.Draft2019},
	}
	var all sync.WaitGroup
	for _, draft := range drafts {
		for _, text := range schemas {
			all.Go(func() {
				c, u := jsonschema.NewCompiler(), upstream.NewCompiler()
				c.Draft, c.AssertFormat = draft.ours, true
				u.Draft, u.AssertFormat = draft.theirs, true
				require.NoError(t, c.AddResource(base, strings.NewReader(text)))
				require.NoError(t, u.AddResource(base, strings.NewReader(text)))
				ours, err := c.Compile(base)
				theirs, want := u.Compile(base)
				assert.Equal(t, said(want), said(err), "%s: %s", draft.ours, text)
				if err != nil || want != nil {
					return
				}
				for _, value := range values {
					var v any
					require.NoError(t, json.Unmarshal([]byte(value), &v))
					assert.Equal(t, said(theirs.Validate(v)), said(ours.Validate(v)), "%s: %s: %s", draft.ours, text, value)
				}
			})
		}
	}
	all.Wait()
}

// base names a schema, as in util/jsonschema.
const base = "mem:///schema"

// said returns the lines of an error. The library goes through maps, so their order
// is not always the same.
func said(err error) []string {
	lines := strings.Split(fmt.Sprintf("%#v", err), "\n")
	slices.Sort(lines)
	return lines
}

// TestNothingIsCompiledBeforeMain counts what the packages allocate before main: ours a
// hundredth of the original's, which is linked into this test, too.
func TestNothingIsCompiledBeforeMain(t *testing.T) {
	t.Parallel()
	exe, err := os.Executable()
	require.NoError(t, err)
	cmd := exec.CommandContext(t.Context(), exe, "-test.run=^$")
	cmd.Env = append(os.Environ(), "GODEBUG=inittrace=1")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	allocations := func(pkg string) int {
		found := regexp.MustCompile(`(?m)^init ` + regexp.QuoteMeta(pkg) + ` @.* (\d+) allocs$`).FindSubmatch(out)
		require.NotNil(t, found, "%s: %s", pkg, out)
		n, err := strconv.Atoi(string(found[1]))
		require.NoError(t, err)
		return n
	}
	require.Less(t, 100*allocations("github.com/united-workforce/uwf/internal/thirdparty/jsonschema"), allocations(upstreamModule))
}
