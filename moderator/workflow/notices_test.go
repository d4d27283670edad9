package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// A variable that no schema requires causes a notice, unless the author handles answers without it.
func TestOptionalVariables(t *testing.T) {
	t.Parallel()
	const file = `name: base
description: d
roles:
  a:
    description: d
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter:
      type: object
      properties: { why: { type: string } }
      required: [%s]
graph:
  $START: { _: a }
  a: %s
`
	for name, c := range map[string]struct {
		required, node string
		problemLines   bool
	}{
		"optional":       {"", `{ _: { role: $END, prompt: "{{why}}" } }`, true},
		"required":       {"why", `{ _: { role: $END, prompt: "{{why}}" } }`, false},
		"in a section":   {"", `{ _: { role: $END, prompt: "x {{#why}}{{why}}{{/why}}" } }`, false},
		"in a list":      {"", `[{ role: $END, condition: "$exists(meta.why)", prompt: "{{why}}" }, $END]`, false},
		"another's name": {"", `{ _: { role: $END, prompt: "{{$prompt}}" } }`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			def, err := parse(fmt.Sprintf(file, c.required, c.node))
			require.NoError(t, err)
			if !c.problemLines {
				require.Empty(t, def.Notices)
				return
			}
			require.Len(t, def.Notices, 1)
			require.Contains(t, def.Notices[0], "base.yaml:16:")
			prosetest.Text(t, def.Notices[0])
		})
	}
}

// A location outside the starting directory causes a notice.
func TestLocationsOutside(t *testing.T) {
	t.Parallel()
	for location, problemLines := range map[string]string{
		"sub": "", "./sub/..": "", "{{{plan}}}": "", "sub/~": "", "..x": "",
		"/srv/{{{plan}}}": "is absolute", `C:\\work`: "is absolute", "~/work": "named ~",
		"..": "is outside", "sub/../../x": "is outside",
	} {
		def, err := parse(base(t, `location: "{{plan}}"`, fmt.Sprintf("location: %q", location)))
		require.NoError(t, err, location)
		all := strings.Join(def.Notices, "\n")
		if problemLines == "" {
			require.NotContains(t, all, "location", location)
			continue
		}
		require.Contains(t, all, "location of graph[planner][ready] ", location)
		require.Contains(t, all, problemLines)
		require.Contains(t, all, "allowLocations")
	}
}

// TestNotesAreNotRepeated checks that an optional field is reported once per role, at the start first.
func TestNotesAreNotRepeated(t *testing.T) {
	t.Parallel()
	text := "version: 1\nname: base\ndescription: d\nroles:\n"
	var edges strings.Builder
	for i := range 12 {
		text += fmt.Sprintf("  r%d: { prompt: p, answer: { $status: [a, b], x: string? } }\n", i)
		fmt.Fprintf(&edges, "  r%d: { a: { role: r%d, prompt: \"{{x}}\" }, b: { role: $END, prompt: \"{{x}}\" } }\n", i, (i+1)%12)
	}
	def, err := parse(text + "graph:\n" + edges.String() + "  $START: { role: r0, prompt: \"{{ repo }}\" }\n")
	require.NoError(t, err)
	require.Len(t, def.Notices, 10)
	require.Contains(t, def.Notices[0], "{{ repo }}")
}
