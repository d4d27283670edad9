package workflow_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/prosetest"
)

// TestMistakesOfNewcomers checks that typical mistakes are all found, each at its line and with a helpful
// word.
func TestMistakesOfNewcomers(t *testing.T) {
	t.Parallel()
	const edges = "    ready: { role: worker, prompt: \"Do {{{plan}}}\", location: \"{{plan}}\" }\n"
	for i, tt := range []struct {
		line     int
		old, new string
	}{
		// YAML.
		{4, "  planner:\n    desc", "\tplanner:\n    desc"},
		{23, "  worker:\n    desc", " worker:\n    desc"},
		{6, "    goal: Plan it.", "   goal: Plan it."},
		{5, "description: Plans", "description: Plans: all of it"},
		{6, "goal: Plan it.", `goal: "Plan it.`},
		{8, "[planning]", "[planning"},
		{38, `worker, prompt: "Do {{{plan}}}"`, `worker prompt: "Do {{{plan}}}"`},
		{38, `"Do {{{plan}}}"`, `{{{plan}}}`},
		{9, "    output: The plan.", "    procedure: The plan."},
		{6, "    goal: Plan it.", "    goal"},
		{5, "description: Plans", "description: @plans"},
		{28, "      Work.\n", "  Work.\n"},
		{39, edges, "   " + edges},

		// Names and shapes.
		{1, "name: base", "nmae: base"},
		{10, "    frontmatter:", "    frontmater:"},
		{46, "maxSteps: 10", `maxSteps: "10"`},
		{7, "[planning]", "planning"},
		{5, "description: Plans", "description: 2026"},
		{23, "    goal: Do it.\n", ""},
		{38, "prompt: \"Do", "promt: \"Do"},
		{6, "Plan it.", "!env GOAL"},
		{12, "oneOf:", "oneOff:"},
		{15, "plan: { type: string }", "plan: { type: strng }"},

		// Graph.
		{38, "role: worker", "role: wroker"},
		{42, "      role: $END", "      role: END"},
		{36, "  $START:", "  START:"},
		{38, "    ready:", "    redy:"},
		{37, edges, ""},
		{23, "role: worker", "role: $END"},
		{36, "role: $END", "role: worker"},
		{39, edges, "  " + strings.TrimLeft(edges, " ")},

		// Templates.
		{38, "{{{plan}}}", "{{{paln}}}"},
		{38, "{{{plan}}}", "{{{plan}}"},

		// Conditions; a negative line is a line in lists.
		{-27, "meta.approved != true", "meta.status = 'good'"},
		{-27, "meta.approved != true", "meta.approved == true"},
		{-27, "meta.approved != true", "meta.approved && depth > 1"},
		{-27, "meta.approved != true", "meta.`$status` = 'goood'"},
	} {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			var err error
			if tt.line < 0 {
				_, err = listed(tt.old, tt.new)
			} else {
				_, err = parse(base(t, tt.old, tt.new))
			}
			inLine := func(problem string) bool {
				return strings.HasPrefix(problem, fmt.Sprint(max(tt.line, -tt.line), ":"))
			}
			all := problemLines(t, err)
			require.True(t, slices.ContainsFunc(all, inLine), "line %d: %v", tt.line, all)
			prosetest.Text(t, all, "%q → %q", tt.old, tt.new)
		})
	}
}

// One mistake causes one problem: its consequences aren't reported.
func TestOneSlipIsOneProblem(t *testing.T) {
	t.Parallel()
	const whole = `name: one
description: One role.
roles:
  a:
    description: Writes.
    goal: You write.
    frontmatter: { type: object, properties: { $status: { const: done }, text: { type: string } }, required: [$status, text] }
graph:
  $START: { _: { role: a } }
  a:
    done: { role: $END, prompt: "{{{text}}}" }
limits: { maxSteps: 20 }
`
	for _, tt := range []struct{ old, new string }{
		{"$START", "START"},
		{"$START", "$start"},
		{"frontmatter", "frontmater"},
		{"maxSteps: 20", `maxSteps: "20"`},
		{"    done: { role: $END, prompt: \"{{{text}}}\" }\n", "    _: { role: $END }\n  done:\n    role: $END\n    prompt: \"{{{text}}}\"\n"},
	} {
		_, err := workflow.Parse(workflow.Source{File: "one.yaml", Data: []byte(strings.Replace(whole, tt.old, tt.new, 1))})
		var problems *workflow.Problems
		require.ErrorAs(t, err, &problems, tt.new)
		require.Len(t, problems.List, 1, "%s: %v", tt.new, err)
		prosetest.Text(t, problems.List[0].Message, tt.old)
		prosetest.Text(t, problems.List[0].Remedy, tt.old)
	}
}
