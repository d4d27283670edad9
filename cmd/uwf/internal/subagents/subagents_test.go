package subagents

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
)

func TestParse(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		text string
		want Agent
		lost string // missing fields
	}{
		"all of it": {
			"---\nname: a\ndescription: Does it\n---\nYou do.\n",
			Agent{Name: "a", Description: "Does it", Prompt: "You do."}, "",
		},
		"a mark, carriage returns, blanks at the ends": {
			"\ufeff---\r\nname: a\r\ndescription: D\r\n---  \r\nOne  \r\n\r\nTwo\t\r\n",
			Agent{Name: "a", Description: "D", Prompt: "One\n\nTwo"}, "",
		},
		"tools with commas in brackets": {
			"---\nname: a\ndescription: D\ntools: Read, Bash(git add:*, git rm:*), Edit\n---\nx\n",
			Agent{Name: "a", Description: "D", Prompt: "x", Tools: []string{"Read", "Bash(git add:*, git rm:*)", "Edit"}}, "tools",
		},
		"a list of tools": {
			"---\nname: a\ndescription: D\ntools: [Read, Edit, [x]]\nmodel: opus\n---\nx\n",
			Agent{Name: "a", Description: "D", Prompt: "x", Tools: []string{"Read", "Edit"}, Permission: "edits", Model: "opus"}, "tools model tools",
		},
		"no tools at all": {
			"---\nname: a\ndescription: D\ntools: []\n---\nx\n",
			Agent{Name: "a", Description: "D", Prompt: "x", Permission: "read-only"}, "tools",
		},
		"all tools but some": {
			"---\nname: a\ndescription: D\ntools:\ndisallowedTools: Bash\n---\nx\n",
			Agent{Name: "a", Description: "D", Prompt: "x", Permission: "edits"}, "tools disallowedTools",
		},
		"planning": {
			"---\nname: a\ndescription: D\npermissionMode: plan\n---\nx\n",
			Agent{Name: "a", Description: "D", Prompt: "x", Permission: "read-only"}, "permissionMode",
		},
		"neither name nor text": {
			"---\ndescription: D\n---\n",
			Agent{Name: "file", Description: "D"}, "text name",
		},
		"no description": {
			"---\nname: a\n---\nx\n",
			Agent{Name: "a", Description: "Does the work of a.", Prompt: "x"}, "description",
		},
		"no YAML": {
			"---\nname: a\ndescription: Use it when: x\ntools:\n  - Read\n  - 'Grep'\nname: b\n---\nx\n",
			Agent{Name: "a", Description: "Use it when: x", Prompt: "x", Tools: []string{"Read", "Grep"}, Permission: "read-only"}, "frontmatter name tools",
		},
		"what a terminal obeys": {
			"---\nname: a\ndescription: \"D\\e[2J\"\n---\nx\x1b[2J\xff\n",
			Agent{Name: "a", Description: "D [2J", Prompt: "x\ufffd[2J\ufffd"}, "description text",
		},
		"fields of other kinds": {
			"---\nname: a\ndescription: [D]\nhooks: {Stop: x}\n2: y\n---\nx\n",
			Agent{Name: "a", Description: "Does the work of a.", Prompt: "x"}, "description hooks 2 description",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, losses, err := Parse("dir/file.md", []byte(tc.text))
			require.NoError(t, err)
			tc.want.File = "dir/file.md"
			assert.Equal(t, tc.want, got)
			var fields []string
			for _, l := range losses {
				fields = append(fields, l.Field)
			}
			assert.Equal(t, tc.lost, strings.Join(fields, " "))
		})
	}
	for _, text := range []string{"", "# Title\n", "---\nname: a\n", "---\ntitle: a\n---\nx\n", "---\n- a\n---\n", "----\nname: a\n---\n"} {
		_, _, err := Parse("x.md", []byte(text))
		assert.Error(t, err, text)
	}
}

func TestSections(t *testing.T) {
	t.Parallel()
	for prompt, want := range map[string][2]string{
		"":                               {"D", ""},
		"You do.":                        {"You do.", ""},
		"You do.\nMuch.\n\n\n# How\n\nx": {"You do.\nMuch.", "# How\n\nx"},
		"# You\n\nYou do.":               {"D", "# You\n\nYou do."},
		"Do:\n```\na\n\nb\n```":          {"D", "Do:\n```\na\n\nb\n```"},
	} {
		goal, procedure := Agent{Description: "D", Prompt: prompt}.sections()
		assert.Equal(t, want, [2]string{goal, procedure}, prompt)
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 200)
	agents := []Agent{{Name: "a"}, {Name: "a"}, {Name: "a-2"}, {Name: "a"}, {Name: "$END"}, {Name: "--"}, {Name: "x/y\n"}, {Name: long}, {Name: long[:100]}, {Name: long[:100]}, {Name: "Two words"}}
	losses := Names(agents)
	var got []string
	for _, a := range agents {
		assert.Empty(t, workflow.RoleNameProblem(a.Name), a.Name)
		got = append(got, a.Name)
	}
	assert.Equal(t, []string{"a", "a-2", "a-2-2", "a-3", "END", "role", "x-y", long[:90], long[:100], long[:90] + "-2", "Two words"}, got)
	assert.Len(t, losses, 8)
}

// A thousand subagents become one workflow whose limit lets all of them run.
func TestThousand(t *testing.T) {
	t.Parallel()
	var agents []Agent
	for i := range 1000 {
		agents = append(agents, Agent{File: fmt.Sprintf("%d.md", i), Name: "same", Description: "D", Prompt: "You do.\n\nIt."})
	}
	Names(agents)
	text, err := Workflow("many", "./many.yaml", agents)
	require.NoError(t, err)
	_, err = workflow.Parse(workflow.Source{Data: []byte(text)})
	require.NoError(t, err)
	assert.Contains(t, text, "maxSteps: 1000")
}

// FuzzImport checks that the result for any file is a valid workflow.
func FuzzImport(f *testing.F) {
	f.Add("---\nname: a\ndescription: b: c\ntools: Read\n---\nYou {{x}}.\n\n```\n---\n!include x\n```\n")
	f.Add("---\nname: \"a/\\e\"\ndescription: |\n  x\n\n  y\nmodel: m\nhooks: {a: b}\n---\n\t- \x00tab\n")
	f.Add("---\nname: 1\ndescription: ~\n---\n  |\n")
	f.Fuzz(func(t *testing.T, text string) {
		if len(text) > 1<<16 {
			return
		}
		a, _, err := Parse("f.md", []byte(text))
		if err != nil {
			return
		}
		agents := []Agent{a, a}
		Names(agents)
		made, err := Workflow("made", "./made.yaml", agents)
		require.NoError(t, err)
		_, err = workflow.Parse(workflow.Source{Data: []byte(made)})
		require.NoError(t, err, made)
	})
}
