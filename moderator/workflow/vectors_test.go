package workflow_test

import (
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
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

// messages are the problems that Parse finds, without their places.
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

// ours says each of the original's findings in our words. One that is empty we
// do not share, because sections are not variables.
func ours() map[string]string {
	single := `the frontmatter of "a" names no statuses to choose from, so its node `
	variable := func(name, lacks string) string {
		return fmt.Sprintf(`prompt of graph[a][%s]: variable %q does not exist: the frontmatter of "a" has no such field%s`, lacks[:1], name, lacks[1:])
	}
	return map[string]string{
		`role "a" graph is missing status keys: y`:                             `"a" can answer "y", but its node has no edge for it`,
		`role "a" graph has extra status keys: z`:                              `"a" never answers "z"`,
		`role "a" graph has extra status keys: x`:                              `"a" never answers "x"`,
		`$START must be defined in graph`:                                      `the graph has no $START`,
		`role "a" is not reachable from $START`:                                `no path leads from $START to role "a"`,
		`role "b" is not reachable from $START`:                                `no path leads from $START to role "b"`,
		`edge a→x: unknown target role "ghost"`:                                `graph[a][x] leads to "ghost", but there is no such role`,
		`graph references unknown role "ghost"`:                                `the graph has a node "ghost", but there is no such role`,
		`role "a" is single-exit but graph has no "_" key`:                     single + `needs the edge "_" instead of "x"`,
		`role "a" is single-exit but has status keys other than "_"`:           single + `can have no edges besides "_": "x"`,
		`role "a" is multi-exit but graph uses "_"`:                            `"a" answers "x" or "y", so its node needs an edge for each of them instead of "_"`,
		`role "a": oneOf variants must have "$status" as const discriminant`:   `variant 2 of the frontmatter of "a" needs $status with a const: it decides which edge is taken`,
		`role "a": oneOf variant $status must be a const value`:                `variant 1 of the frontmatter of "a" needs $status with a const: it decides which edge is taken`,
		`prompt variable "w" not found in role "a" frontmatter`:                variable("w", "_"),
		`prompt variable "q" not found in role "a" frontmatter`:                variable("q", "_"),
		`prompt variable "w" in graph[a][x] not found in role "a" frontmatter`: variable("w", "x"),
		`prompt variable "z" not found in role "a" variant "x"`:                variable("z", `x when it answers "x"`),
		`prompt variable "v" not found in role "a" variant "y"`:                variable("v", `y when it answers "y"`),
		`prompt variable "#s" not found in role "a" frontmatter`:               "",
		`prompt variable "/s" not found in role "a" frontmatter`:               "",
	}
}

func TestSemanticVectors(t *testing.T) {
	t.Parallel()
	translation := ours()
	for i, v := range vectors[struct {
		Payload json.RawMessage
		Errors  []string
	}](t, "workflow-semantic.json") {
		t.Run(fmt.Sprint(i), func(t *testing.T) {
			t.Parallel()
			want := []string{}
			for _, theirs := range v.Errors {
				message, known := translation[theirs]
				require.True(t, known, "no translation of %s", theirs)
				if message != "" {
					want = append(want, message)
				}
			}
			require.ElementsMatch(t, want, messages(t, v.Payload))
		})
	}
}

// shapeProblems are our words for what the original only answered with "expected
// WorkflowPayload shape", by the vector's index.
func shapeProblems() map[int]string {
	return map[int]string{
		0: "a workflow is a mapping, but this is a list",
		1: `the workflow has no "description"`,
		3: `frontmatter of role "a" needs a "type" or "oneOf"`,
		4: `frontmatter of role "a" needs a "type" or "oneOf"`,
		5: "prompt of graph[a][_] is blank",
		6: "location of graph[a][_] must be a text, but this is the number 3",
		8: "graph[a] is an empty list: nothing would follow",
		9: "roles must be a mapping from name to role, but this is a list",
	}
}

func TestShapeVectors(t *testing.T) {
	t.Parallel()
	all := shapeProblems()
	for i, v := range vectors[struct {
		Raw    json.RawMessage
		Parsed any
	}](t, "workflow-shape.json") {
		want, wrong := all[i]
		require.Equal(t, v.Parsed == nil, wrong, "vector %d", i)
		got := messages(t, v.Raw)
		if wrong {
			require.Contains(t, got, want, "vector %d", i)
			continue
		}
		for _, message := range got { // its graph is wrong, but not its shape
			require.NotContains(t, message, "must be", "vector %d", i)
			require.NotContains(t, message, "has no \"", "vector %d", i)
		}
	}
}

// Real workflows of the original are valid, and are stored as there: the same
// schemas under the same titles, the same roles, the same edges. Only the
// original's "location: null" we leave out.
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
