// Package templates holds the workflows that `uwf workflow new` begins with.
// Each file is a whole workflow that runs as it is, and teaches what it shows in
// its comments.
package templates

import (
	"embed"
	"fmt"
	"strings"
)

//go:embed *.yaml
var files embed.FS

// placeholder stands for the name of the new workflow in every file.
const placeholder = "my-workflow"

// Template is a workflow to begin with.
type Template struct {
	Name  string `json:"name"`
	Usage string `json:"usage"` // what it is for, in one line
}

// All lists the templates, the default first.
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

// Names lists the names of the templates.
func Names() []string {
	var names []string
	for _, t := range All() {
		names = append(names, t.Name)
	}
	return names
}

// Text is a template with the name of the new workflow filled in. quoted is the
// name as YAML writes it, plain as it stands in commands.
func Text(template, plain, quoted string) (string, error) {
	data, err := files.ReadFile(template + ".yaml")
	if err != nil {
		return "", fmt.Errorf("template %q: %w", template, err)
	}
	text := strings.Replace(string(data), "\nname: "+placeholder+"\n", "\nname: "+quoted+"\n", 1)
	return strings.ReplaceAll(text, placeholder, plain), nil
}
