package workflowtext_test

import (
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowtext"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// memory stores schemas under a hash of their JSON, as a store does.
type memory map[protocol.Hash]any

func (m memory) put(_ string, schema any) (protocol.Hash, error) {
	data, err := json.Marshal(schema)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(data)
	h := protocol.Hash(base32.NewEncoding("0123456789ABCDEFGHJKMNPQRSTVWXYZ").EncodeToString(sum[:])[:13])
	m[h] = schema
	return h, nil
}

func (m memory) get(h protocol.Hash) (any, error) {
	if s, ok := m[h]; ok {
		return s, nil
	}
	return nil, errors.New("no such node")
}

// stored returns the stored form of a definition.
func stored(t *testing.T, def workflow.Definition) (protocol.Workflow, memory) {
	t.Helper()
	m := memory{}
	w, err := def.Store(m.put)
	require.NoError(t, err)
	return w, m
}

// requireSame formats a stored definition and checks that the text is stored as the same node.
func requireSame(t *testing.T, def workflow.Definition) []byte {
	t.Helper()
	w, schemas := stored(t, def)
	back, err := workflowtext.Restore(w, schemas.get)
	require.NoError(t, err)
	text, err := workflowtext.YAML(back)
	require.NoError(t, err)
	again, err := workflow.Parse(workflow.Source{Data: text})
	require.NoError(t, err, "%s", text)
	w2, schemas2 := stored(t, again)
	require.Equal(t, w, w2, "%s", text)
	require.Equal(t, schemas, schemas2)
	return text
}

func examples(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	texts := map[string][]byte{}
	for _, file := range append(files, "../workflow/testdata/base.yaml") {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[file] = data
	}
	return texts
}

func TestExamplesComeBackAsTheSameNodes(t *testing.T) {
	t.Parallel()
	for file, data := range examples(t) {
		def, err := workflow.Parse(workflow.Source{Data: data, Path: file})
		require.NoError(t, err, file)
		text := requireSame(t, def)
		require.Equal(t, string(text), string(requireSame(t, def)), "the text depends on the workflow alone")
	}
}

// lists has both forms of graph nodes, and all three forms of conditions.
const lists = `name: lists
description: d
roles:
  worker: { description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: { type: object, properties: { ok: { type: boolean } }, required: [ok] } }
  judge: { description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: { type: object, properties: { $status: { enum: [good, bad] } }, required: [$status] } }
conditions:
  notOk: { description: "It is not: ok", expression: "output.ok = false" }
  late: depth > 3
graph:
  $START: { _: worker }
  worker:
    - { to: worker, condition: notOk, prompt: "Again: {{ok}}" }
    - { role: $SUSPEND, when: late, prompt: "Go on?" }
    - { role: $SUSPEND, condition: "$exists(output.ok) and\n  output.ok", prompt: "Go on?" }
    - { role: judge, condition: null }
  judge: { good: $END, bad: worker }
`

func TestBothFormsComeBack(t *testing.T) {
	t.Parallel()
	def, err := workflow.Parse(workflow.Source{Data: []byte(lists)})
	require.NoError(t, err)
	text := string(requireSame(t, def))
	require.Contains(t, text, `- { role: worker, when: notOk, prompt: "Again: {{ok}}" }`)
	require.Contains(t, text, "- { role: judge }\n")
}

// all has roles without agents, and inputs.
const all = `name: all
description: d
inputs:
  branch: { schema: { type: string }, default: main, description: Of git }
  quick: { schema: { type: boolean }, default: false }
roles:
  tests: { description: d, run: [go, test, "{{$inputs.branch}}", "5", "true", ""], timeout: 1h30m }
  lint: { description: d, run: [lint], parse: json, frontmatter: { type: object, properties: { $status: { enum: [ok, bad] } }, required: [$status] } }
  gate: { description: d, person: true, frontmatter: { type: object, properties: { $status: { enum: [fine, no] } }, required: [$status] } }
  tag: { description: d, run: "echo \"$B\"\n{{.Names}}\n", shell: bash, env: { B: "{{$inputs.branch}}", A: "" } }
  perl: { description: d, run: "print 1", shell: [perl, -e], timeout: 5s }
graph:
  $START: { _: tests }
  tests: { passed: tag, failed: perl }
  tag: { passed: lint, failed: $END }
  perl: { passed: lint, failed: $END }
  lint: { ok: gate, bad: tests }
  gate: { fine: $END, no: tests }
`

func TestAllPlayersComeBack(t *testing.T) {
	t.Parallel()
	def, err := workflow.Parse(workflow.Source{Data: []byte(all)})
	require.NoError(t, err)
	text := string(requireSame(t, def))
	require.Contains(t, text, `timeout: "1h30m"`)
	require.NotContains(t, text, "exitCode", "a command's own schema is not its author's")
	require.NotContains(t, text, "goal")
	require.Contains(t, text, "shell: bash\n")
}

// FuzzYAML checks that any stored workflow can be formatted and stored again.
func FuzzYAML(f *testing.F) {
	for _, data := range examples(f) {
		f.Add(data)
	}
	f.Add([]byte(lists))
	f.Add([]byte(all))
	f.Add([]byte("name: x\ndescription: \" \\t d\\n\"\nroles: {a,: {description: \"- a\", goal: '', capabilities: ['',\"\\r\"], procedure: \"a \\n b\", output: \"\\n\\n\", frontmatter: {type: object, default: {b: [1.5e300, null]}, properties: {\"a: b\": {enum: [1, 'x', {}]}}}}}\ngraph: {$START: {new: {role: 'a,'}}, 'a,': {_: {role: $END, prompt: \"{{{$prompt}}} \\t\"}}}\nlimits: {}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		def, err := workflow.Parse(workflow.Source{Data: data})
		if err == nil {
			requireSame(t, def)
		}
	})
}

func TestListsOfTransitionsAndConditions(t *testing.T) {
	t.Parallel()
	text, err := workflowtext.YAML(workflow.Definition{
		Workflow: protocol.Workflow{
			Name: "both", Description: "d",
			Roles: map[string]protocol.Role{"z": {Capabilities: []string{"plan"}}, "a": {Capabilities: []string{}, ExtractPrompt: "Look."}},
			Conditions: map[string]protocol.Condition{
				"tired": {Expression: "depth > 3"}, "bad": {Description: "Not good.", Expression: "meta.ok = false"},
			},
			Graph: map[string]protocol.GraphNode{
				"$START": {Edges: map[string]protocol.Edge{"_": {Role: "z"}}},
				"z": {Transitions: []protocol.Transition{
					{Edge: protocol.Edge{Role: "a", Prompt: "One\ntwo\n"}, Condition: "bad"},
					{Edge: protocol.Edge{Role: "$END"}},
				}},
				"a": {Edges: map[string]protocol.Edge{"_": {Role: "z", Location: "{{dir}}"}}},
			},
			Limits: &protocol.Limits{MaxSteps: 3},
		},
		Schemas: map[string]any{"z": map[string]any{"type": "object"}, "a": map[string]any{"required": []any{"y", "x"}, "properties": map[string]any{
			"x": map[string]any{"type": "string"}, "y": map[string]any{"type": "string"}, "b": map[string]any{}, "$status": map[string]any{"const": "ok"}}, "type": "object"}},
	})
	require.NoError(t, err)
	want, err := os.ReadFile("testdata/both.yaml")
	require.NoError(t, err)
	require.Equal(t, string(want), string(text))
}

func TestRestoreNamesRoleWithoutSchema(t *testing.T) {
	t.Parallel()
	_, err := workflowtext.Restore(protocol.Workflow{Roles: map[string]protocol.Role{"a": {Frontmatter: "0000000000001"}}}, memory{}.get)
	prosetest.Error(t, err)
}
