// Package templates contains the workflows with which `uwf workflow new` begins. Each file is a complete
// workflow that runs as it is; its comments explain it.
package templates

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// placeholder is replaced by the name of the new workflow.
const placeholder = "my-workflow"

// Template is a workflow to begin with.
type Template struct {
	Name  string `json:"name"`
	Usage string `json:"usage"` // one-line description
}

// All returns the templates, the default first.
func All() []Template {
	return []Template{
		{"loop", "one role works until it is done (the smallest workflow)"},
		{"review", "find problems, verify each one, write a report"},
		{"solve-issue", "plan, develop, review; ask you if something is unclear"},
		{"debate", "two sides argue until a judge decides"},
		{"checks", "make changes until a command, such as a test, passes"},
		{"approve", "write something, wait for approval, publish it with a command"},
		{"panel", "several reviewers work in parallel; their reviews are merged"},
		{"each", "make a list, work on all items in parallel, write a report"},
		{"issue-to-pr", "fix a GitHub issue and open a pull request, with two approvals"},
		{"review-pr", "review a GitHub pull request; you decide what to publish"},
		{"research", "split a question, research each part, write the answer"},
	}
}

// Names returns the names of the templates.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}

// Text returns a template with the name of the new workflow. plain is the name in commands, quoted the name
// in YAML.
func Text(template, plain, quoted string) (string, error) {
	data, err := files.ReadFile(template + ".yaml")
	if err != nil {
		return "", fmt.Errorf("template %q: %w", template, err)
	}
	text := strings.Replace(string(data), "\nname: "+placeholder+"\n", "\nname: "+quoted+"\n", 1)
	return strings.ReplaceAll(text, placeholder, plain), nil
}
