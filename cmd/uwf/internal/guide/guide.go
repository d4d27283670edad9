// Package guide contains the reference texts of `uwf guide`, in Markdown for people and agents alike. A test
// checks every command line in them against the program.
package guide

import (
	"embed"
	"io/fs"
	"strings"
)

// Text is one text of the guide.
type Text struct {
	Name     string
	Aliases  []string // the original's later names
	About    string   // one-line description
	Markdown string
}

var (
	//go:embed user.md
	user string
	//go:embed author.md
	author string
	//go:embed adapter.md
	adapter string
	//go:embed developer.md
	developer string
	//go:embed bootstrap.md
	bootstrap string
	//go:embed setup.md
	setup string
	//go:embed coming-from.md
	comingFrom string
)

// Commands has the descriptions of the commands of uwf, see [cmdline.Describe].
//
//go:embed commands.txt
var Commands string

// separator separates the parts of usage.
const separator = "\n\n---\n\n"

// All returns the texts in reading order; usage combines the first four.
func All() []Text {
	texts := []Text{
		{Name: "user", About: "how to run workflows", Markdown: user},
		{Name: "author", Aliases: []string{"workflow-authoring"}, About: "how to write a workflow", Markdown: author},
		{Name: "adapter", Aliases: []string{"adapter-developing"}, About: "how to write an agent, in any language", Markdown: adapter},
		{Name: "developer", About: "how uwf itself is built", Markdown: developer},
		{Name: "bootstrap", About: "a skill file that teaches an agent to use uwf", Markdown: bootstrap},
		{Name: "setup", About: "how an agent installs that skill file", Markdown: setup},
		{Name: "coming-from", About: "the words of other workflow tools", Markdown: comingFrom},
	}
	var parts []string
	for _, t := range texts[:4] {
		parts = append(parts, strings.TrimSpace(t.Markdown))
	}
	usage := Text{Name: "usage", About: "the guides user, author, adapter and developer", Markdown: strings.Join(parts, separator) + "\n"}
	return append([]Text{usage}, texts...)
}

// Skill returns the skill file that teaches an agent to use uwf.
func Skill() string { return bootstrap }

//go:embed help/*.txt
var topics embed.FS

// Topics returns the sorted names of `uwf help` topics other than commands.
func Topics() []string {
	var names []string
	files, _ := fs.Glob(topics, "help/*.txt") // cannot fail: the pattern is valid and the files are embedded
	for _, f := range files {
		names = append(names, strings.TrimSuffix(strings.TrimPrefix(f, "help/"), ".txt"))
	}
	return names
}

// Topic returns the text of a topic.
func Topic(name string) (text string, ok bool) {
	data, err := topics.ReadFile("help/" + name + ".txt")
	return string(data), err == nil
}
