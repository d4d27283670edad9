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

type Template struct {
	Name  string `json:"name"`
	Usage string `json:"usage"` // one-line description
}

// All returns the templates, the default first.
func All() []Template {
	return []Template{
		{"loop", "one role works until it says that it is done (the smallest)"},
		{"review", "a finder, a sceptic who checks each finding, and a report"},
		{"solve-issue", "plan, develop, review; back to work if rejected; asks a person if unclear"},
		{"debate", "two sides argue, a judge decides when it is enough"},
		{"checks", "change something until a command says that it is right"},
		{"approve", "write something, let a person approve it, publish it by a command"},
		{"panel", "several look at it side by side, each by itself, and what they say is joined"},
		{"each", "find a list of things, work on each of them at once, report"},
		{"issue-to-pr", "plan and fix an issue of GitHub, and open a pull request; a person opens two gates"},
		{"review-pr", "several review a pull request of GitHub; a person decides what is published"},
		{"research", "split a question, research until nothing is open, write the answer"},
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
