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

// TestDocumentedWorkflowsAreValid checks every workflow, and every part of one, that these pages show.
func TestDocumentedWorkflowsAreValid(t *testing.T) {
	t.Parallel()
	for file, least := range map[string]int{
		"docs/workflow-file.md": 8, "docs/write-a-workflow.md": 1, "docs/parallel-roles.md": 4, "README.md": 1,
	} {
		data, err := os.ReadFile(filepath.Join(repository, file))
		require.NoError(t, err)
		shown := 0
		for _, block := range regexp.MustCompile("(?ms)^```yaml\n(.*?)^```").FindAllStringSubmatch(string(data), -1) {
			if text := whole(block[1]); text != "" {
				_, err := workflow.Parse(workflow.Source{Data: []byte(text), Workflow: review})
				require.NoError(t, err, "%s shows\n%s", file, block[1])
				shown++
			}
		}
		require.Equal(t, least, shown, file)
	}
}

// review returns the workflow that pages run as a child.
func review(name string) (workflow.Used, error) {
	d, err := workflow.Parse(workflow.Source{Data: []byte(`name: review
description: Review a branch.
inputs: { branch: string }
roles:
  reviewer: { prompt: "Review {{$inputs.branch}}." }
graph:
  $START: reviewer
  reviewer: $END
`)})
	return workflow.Used{Hash: "7XHF2G4QT4C1Z", Definition: d}, err
}

// whole completes a part of a workflow that a page shows. It returns "" for anything else, such as
// a part of config.yaml.
func whole(block string) string {
	writer := role("writer", "oneOf: [{properties: {$status: {const: written}, path: {type: string}}}, {properties: {$status: {const: question}, question: {type: string}}}]")
	editor := role("editor", "type: object")
	switch key, _, _ := strings.Cut(block, ":"); key {
	case "name":
		return block
	case "graph", "conditions":
		return head + writer + editor + block
	case "schema":
		judge := "  judge:\n    goal: g\n    description: d\n" + indent(block, "    ")
		return head + judge + "\ngraph:\n  $START: judge\n  judge: {approved: $END, rejected: {role: $FAIL, prompt: \"{{comments}}\"}}\n"
	}
	return ""
}

func indent(text, by string) string {
	return by + strings.ReplaceAll(strings.TrimSpace(text), "\n", "\n"+by)
}
