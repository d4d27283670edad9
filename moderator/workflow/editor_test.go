package workflow_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/yamldoc"
)

func editorSchema(t *testing.T) *jsonschema.Schema {
	t.Helper()
	s, err := jsonschema.CompileString("workflow.json", string(protocol.EditorSchema(protocol.EditWorkflow)))
	require.NoError(t, err)
	return s
}

// value parses YAML as an editor does: an !include becomes its file name.
func value(t *testing.T, text string) any {
	t.Helper()
	doc, err := yamldoc.Parse([]byte(text), yamldoc.Bounds{})
	require.NoError(t, err)
	return fromJSON(t, toJSON(t, doc.Root.Value()))
}

func toJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return string(b)
}

func fromJSON(t *testing.T, text string) (v any) {
	t.Helper()
	require.NoError(t, json.Unmarshal([]byte(text), &v))
	return v
}

// third uses features that only version 3 of workflows has.
const third = `name: base
description: d
inputs: { quick: boolean = false }
roles:
  plan: { prompt: "Plan {{$prompt}}.", answer: { $status: [ready, unclear], size: integer } }
  lint: { run: make lint, shell: bash, env: { QUICK: "{{$inputs.quick}}" } }
  test: { run: [make, test] }
  checks: { all: { lint: lint, test: { role: test, when: "$not($inputs.quick)" } }, collect: true, onFailure: continue }
  each: { each: { of: "[1, 2]", role: lint }, onFailure: continue }
  sum: { compute: "{ 'big': $steps.plan.size > 3 }", answer: { big: boolean } }
graph:
  $START: plan
  plan:
    ready: checks
    unclear: [{ role: $FAIL, when: "depth > 3", prompt: "{{$body}}" }, plan]
    $error: { role: $FAIL, prompt: "{{error}}" }
  checks: each
  each: { done: sum, failed: sum, $error: sum }
  sum: { role: $END, prompt: "{{big}} {{$steps.plan.size}}" }
`

// good returns valid workflows in all forms, by name.
func good(t *testing.T) map[string]string {
	t.Helper()
	texts := map[string]string{"base": base(t), "lists": strings.Replace(lists, `, location: "{{plan}}"`, "", 1), "older": older, "players": players,
		"third": third}
	for _, p := range pairs() {
		texts["short: "+p.name], texts["long: "+p.name] = p.short, p.long
	}
	files, err := filepath.Glob(filepath.Join(repository, "examples", "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		texts[filepath.Base(file)] = string(data)
	}
	return texts
}

// readsInclude reports whether Parse can read a text without its directory.
func readsInclude(text string) bool { return strings.Contains(text, "!include") }

func accepts(text string) error {
	_, err := workflow.Parse(workflow.Source{Data: []byte(text), Node: nodes})
	return err
}

func TestSchemaAcceptsValid(t *testing.T) {
	t.Parallel()
	schema := editorSchema(t)
	for name, text := range good(t) {
		require.NoError(t, schema.Validate(value(t, text)), name)
		if !readsInclude(text) {
			require.NoError(t, accepts(text), name)
		}
	}
}

// Every example references the schema, so that editors complete copies of it.
func TestExamplesNameTheirSchema(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "examples", "*.yaml"))
	require.NoError(t, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		line, _, _ := strings.Cut(string(data), "\n")
		path, ok := strings.CutPrefix(line, "# yaml-language-server: $schema=")
		require.True(t, ok, file)
		_, err = os.Stat(filepath.Join(filepath.Dir(file), path))
		require.NoError(t, err, file)
	}
}

// uwf rejects everything that the schema rejects, so editors never mark valid files as wrong.
func TestSchemaNeverRejectsValid(t *testing.T) {
	t.Parallel()
	schema := editorSchema(t)
	texts := good(t)
	names := slices.Sorted(maps.Keys(texts))
	random := rand.New(rand.NewPCG(3, 200))
	bySchema, byUwf := 0, 0
	for i := 0; bySchema < 300; i++ {
		require.Less(t, i, 5000)
		text := texts[names[i%len(names)]]
		if readsInclude(text) {
			continue
		}
		root := value(t, text)
		change := mutate(random, root)
		broken := toJSON(t, root)
		schemaErr, err := schema.Validate(root), accepts(broken)
		if err != nil {
			byUwf++
		}
		if schemaErr != nil {
			bySchema++
			require.Error(t, err, "%s: %s\nthe schema says: %#v", names[i%len(names)], change, schemaErr)
		}
	}
	require.GreaterOrEqual(t, byUwf, 300)
}

// Problems that only uwf can detect: the schema accepts them, and uwf reports them.
func TestWhatOnlyTheValidatorKnows(t *testing.T) {
	t.Parallel()
	schema := editorSchema(t)
	for desc, edit := range map[string][2]string{
		"names that nothing has":           {"role: worker", "role: wroker"},
		"statuses without an edge":         {"    ready:", "    redy:"},
		"nodes without a role":             {"  worker:\n    _:", "  wroker:\n    _:"},
		"paths that never end":             {"      role: $END", "      role: worker"},
		"templates":                        {"{{summary}}", "{{summery}}"},
		"template syntax":                  {"{{summary}}", "{{#summary}}"},
		"patterns that do not compile":     {"summary: { type: string }", "summary: { type: string, pattern: '(' }"},
		"reserved characters of a name":    {"name: base", "name: a b"},
		"a const that is missing":          {"$status: { const: ready }", "$status: { type: string }"},
		"roles that nothing leads to":      {"{ _: planner }", "{ _: worker }"},
		"numbers that are out of reach":    {"maxSteps: 10", "maxSteps: 10000000000"},
		"who may be asked at the start":    {"{ _: planner }", "{ _: planner, resume: $SUSPEND }"},
		"a status that cannot be at all":   {"{ _: planner }", "{ ready: planner }"},
		"the way out of $END":              {"  worker:\n    _:", "  $END: { _: planner }\n  worker:\n    _:"},
		"what a prompt can be left out of": {"description: Plans", `description: ""`},
	} {
		text := base(t, edit[0], edit[1])
		require.NoError(t, schema.Validate(value(t, text)), desc)
		require.Error(t, accepts(text), desc)
	}
	for desc, edit := range map[string][2]string{
		"conditions that do not exist": {"condition: notApproved", "condition: notAproved"},
		"JSONata":                      {"depth > 5", "depth >"},
		"entries that are never taken": {"condition: notApproved, ", ""},
	} {
		text := replaceOnce(strings.Replace(lists, `, location: "{{plan}}"`, "", 1), edit[0], edit[1])
		require.NoError(t, schema.Validate(value(t, text)), desc)
		require.Error(t, accepts(text), desc)
	}
}

// mutate changes a random part of a value and describes the change.
func mutate(random *rand.Rand, root any) string {
	for {
		var at []func() string
		collect(root, "", func(path string, parent any, key any) {
			at = append(at, func() string { return path + ": " + change(random, parent, key) })
		})
		if desc := at[random.IntN(len(at))](); desc != "" {
			return desc
		}
	}
}

// collect visits everything inside a value.
func collect(v any, path string, visit func(path string, parent, key any)) {
	switch v := v.(type) {
	case map[string]any:
		for _, key := range slices.Sorted(maps.Keys(v)) {
			visit(path+"/"+key, v, key)
			collect(v[key], path+"/"+key, visit)
		}
	case []any:
		for i, item := range v {
			visit(fmt.Sprint(path, "/", i), v, i)
			collect(item, fmt.Sprint(path, "/", i), visit)
		}
	}
}

func change(random *rand.Rand, parent, key any) string {
	wrong := []any{nil, true, 7, -1, 2.5, "", " ", "text", []any{}, []any{"a"}, map[string]any{}, map[string]any{"a": "b"}}
	replacement := wrong[random.IntN(len(wrong))]
	switch parent := parent.(type) {
	case []any:
		parent[key.(int)] = replacement
	case map[string]any:
		name := key.(string)
		switch random.IntN(4) {
		case 0:
			delete(parent, name)
			return "deleted"
		case 1:
			parent[name+"x"] = parent[name]
			delete(parent, name)
			return "renamed"
		case 2:
			parent["extra"] = replacement
			return fmt.Sprintf("%v beside it", replacement)
		}
		parent[name] = replacement
	}
	return fmt.Sprintf("%#v instead", replacement)
}
