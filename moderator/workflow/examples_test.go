package workflow_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
)

// repository is the root of the repository, relative to this package.
const repository = "../.."

func TestExamplesAreValid(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(repository, "examples", "*.yaml"))
	require.NoError(t, err)
	require.GreaterOrEqual(t, len(files), 6)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(t, err)
		_, err = workflow.Parse(workflow.Source{File: file, Data: data})
		require.NoError(t, err)
	}
}

// The workflows in the reference and the README are valid.
func TestDocumentedWorkflowsAreValid(t *testing.T) {
	t.Parallel()
	for file, least := range map[string]int{"docs/workflow.md": 15, "README.md": 1} {
		data, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		shown := 0
		for _, block := range regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(data), -1) {
			for _, text := range workflows(t, block[1]) {
				_, err := workflow.Parse(workflow.Source{Data: []byte(text)})
				require.NoError(t, err, "%s shows\n%s", file, block[1])
				shown++
			}
		}
		require.Equal(t, least, shown, file)
	}
}

// workflows completes the excerpt shown in a document to whole workflows.
func workflows(t *testing.T, block string) []string {
	t.Helper()
	writer := role("writer", "oneOf: [{properties: {$status: {const: written}, path: {type: string}, notes: {type: string}}}, {properties: {$status: {const: question}, question: {type: string}}}]")
	editor := role("editor", "type: object")
	graph := "graph:\n  $START: {_: writer}\n  editor: {_: $END}\n  writer:\n    question: $SUSPEND\n    written:\n      role: editor\n"
	switch key, _, _ := strings.Cut(strings.TrimLeft(block, "# "), ":"); {
	case key == "name":
		return []string{block}
	case key == "roles":
		return nil // it runs workflows in other files; the stories of children cover whole ones
	case key == "graph", key == "conditions":
		return []string{head + writer + editor + block}
	case key == "limits":
		return []string{head + writer + editor + graph + block}
	case key == "prompt":
		return []string{head + writer + editor + graph + indent(block, "      ")}
	case strings.Contains(block, "answer:") && strings.Contains(block, "$status"):
		parts := strings.Split(block, "\n\n")
		edges := []string{"{argued: a, conceded: $END}", "$END", "{approved: $END, rejected: a}", "{done: $END, _: a}"}
		require.Len(t, parts, len(edges))
		var out []string
		for i, part := range parts {
			whole := head + "  a:\n    description: d\n    goal: g\n    capabilities: []\n    procedure: p\n    output: o\n" + indent(part, "    ")
			out = append(out, whole+"\ngraph:\n  $START: {_: a}\n  a: "+edges[i]+"\n")
		}
		return out
	}
	return nil // other YAML, such as config.yaml
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}
