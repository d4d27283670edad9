package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

func vectors[T any](t *testing.T, file string) []T {
	t.Helper()
	data, err := os.ReadFile("testdata/" + file)
	require.NoError(t, err)
	var v []T
	require.NoError(t, json.Unmarshal(data, &v))
	require.NotEmpty(t, v)
	return v
}

// messages returns the problems found by Parse, without positions.
func messages(t *testing.T, data []byte) []string {
	t.Helper()
	_, err := workflow.Parse(workflow.Source{Data: data})
	list := []string{}
	if err == nil {
		return list
	}
	var problems *workflow.Problems
	require.ErrorAs(t, err, &problems)
	for _, p := range problems.List {
		list = append(list, p.Message)
	}
	return list
}

func TestSemanticVectors(t *testing.T) {
	t.Parallel()
	notShared := []string{ // sections are not variables
		`prompt variable "#s" not found in role "a" frontmatter`, `prompt variable "/s" not found in role "a" frontmatter`,
	}
	for i, v := range vectors[struct {
		Payload json.RawMessage
		Errors  []string
	}](t, "workflow-semantic.json") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			ours := messages(t, v.Payload)
			theirs := slices.DeleteFunc(v.Errors, func(e string) bool { return slices.Contains(notShared, e) })
			require.Len(t, ours, len(theirs), "%v", theirs)
			prosetest.Text(t, ours, strings.Join(theirs, "; "))
		})
	}
}

func TestShapeVectors(t *testing.T) {
	t.Parallel()
	for i, v := range vectors[struct {
		Raw    json.RawMessage
		Parsed any
	}](t, "workflow-shape.json") {
		got := messages(t, v.Raw)
		if v.Parsed == nil {
			require.NotEmpty(t, got, "vector %d", i)
		}
		prosetest.Text(t, got, "vector %d", i) // well-formed, though its graph might be wrong
	}
}

// Real workflows of the original are valid and stored as in the original: the same schemas with the same
// titles, roles and edges. Only its "location: null" is omitted.
func TestHashVectors(t *testing.T) {
	t.Parallel()
	type roleSchema struct {
		Hash   protocol.Hash
		Schema any
	}
	for _, v := range vectors[struct {
		File         string
		YAML         string
		Materialized json.RawMessage
		RoleSchemas  map[string]roleSchema
	}](t, "workflow-hash.json") {
		t.Run(v.File, func(t *testing.T) {
			t.Parallel()
			def, err := workflow.Parse(workflow.Source{Data: []byte(v.YAML)})
			require.NoError(t, err)
			stored, err := def.Store(func(role string, schema any) (protocol.Hash, error) {
				requireSameJSON(t, v.RoleSchemas[role].Schema, schema)
				return v.RoleSchemas[role].Hash, nil
			})
			require.NoError(t, err)
			require.NoError(t, stored.Validate())
			var want protocol.Workflow
			require.NoError(t, json.Unmarshal(v.Materialized, &want))
			requireSameJSON(t, want, stored)
		})
	}
}

func requireSameJSON(t *testing.T, want, got any) {
	t.Helper()
	w, err := json.Marshal(want)
	require.NoError(t, err)
	g, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, string(w), string(g))
}
