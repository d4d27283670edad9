package workflow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
)

// TestMistakesOfNewcomers checks that the mistakes people make are found, all of
// them, in their line and with a word that leads to the repair.
func TestMistakesOfNewcomers(t *testing.T) {
	t.Parallel()
	const edges = "    ready: { role: worker, prompt: \"Do {{{plan}}}\", location: \"{{plan}}\" }\n"
	for i, tt := range []struct {
		line     int
		word     string
		old, new string
	}{
		// YAML.
		{4, "a tab cannot stand before this", "  planner:\n    desc", "\tplanner:\n    desc"},
		{23, "begins in column 2, but the entries before it in column 1 or 3", "  worker:\n    desc", " worker:\n    desc"},
		{6, "a second 'key:' on one line", "    goal: Plan it.", "   goal: Plan it."},
		{5, "a second 'key:' on one line", "description: Plans", "description: Plans: all of it"},
		{6, "the quote that opens here is only closed in line 34", "goal: Plan it.", `goal: "Plan it.`},
		{8, "the closing bracket is missing", "[planning]", "[planning"},
		{38, "text without quotes cannot contain ': '", `worker, prompt: "Do {{{plan}}}"`, `worker prompt: "Do {{{plan}}}"`},
		{38, "needs quotes", `"Do {{{plan}}}"`, `{{{plan}}}`},
		{9, "already in line 8", "    output: The plan.", "    procedure: The plan."},
		{6, "':' is missing", "    goal: Plan it.", "    goal"},
		{5, "put it in quotes", "description: Plans", "description: @plans"},
		{28, "must be indented", "      Work.\n", "  Work.\n"},
		{39, "begins in column 5, but the entries before it in column 1 or 3 or 8", edges, "   " + edges},

		// Names and shapes.
		{1, `did you mean "name"?`, "name: base", "nmae: base"},
		{10, `did you mean "frontmatter"?`, "    frontmatter:", "    frontmater:"},
		{46, "must be a whole number", "maxSteps: 10", `maxSteps: "10"`},
		{7, "must be a list of texts", "[planning]", "planning"},
		{5, "must be a text", "description: Plans", "description: 2026"},
		{23, `has no "goal"`, "    goal: Do it.\n", ""},
		{38, `did you mean "prompt"?`, "prompt: \"Do", "promt: \"Do"},
		{6, `the tag "!env" means nothing`, "Plan it.", "!env GOAL"},
		{12, `did you mean "oneOf"?`, "oneOf:", "oneOff:"},
		{15, `did you mean "string"?`, "plan: { type: string }", "plan: { type: strng }"},

		// Graph.
		{38, `did you mean "worker"?`, "role: worker", "role: wroker"},
		{42, `did you mean "$END"?`, "      role: $END", "      role: END"},
		{36, `did you mean "$START"?`, "  $START:", "  START:"},
		{38, `"planner" never answers "redy"`, "    ready:", "    redy:"},
		{37, `can answer "ready"`, edges, ""},
		{23, "no path leads", "role: worker", "role: $END"},
		{36, "no path leads from $START to $END", "role: $END", "role: worker"},
		{39, "begins in column 5, but the entries before it in column 1 or 3", edges, "  " + strings.TrimLeft(edges, " ")},

		// Templates.
		{38, `did you mean "plan"?`, "{{{plan}}}", "{{{paln}}}"},
		{38, "is not closed with }}}", "{{{plan}}}", "{{{plan}}"},

		// Conditions: the line is that in the lists below.
		{-27, "meta.`$status`", "meta.approved != true", "meta.status = 'good'"},
		{-27, `write one "="`, "meta.approved != true", "meta.approved == true"},
		{-27, `write "and"`, "meta.approved != true", "meta.approved && depth > 1"},
		{-27, `is never "goood" → did you mean "good"?`, "meta.approved != true", "meta.`$status` = 'goood'"},
	} {
		t.Run(fmt.Sprint(i+1, " ", tt.word), func(t *testing.T) {
			t.Parallel()
			var err error
			if tt.line < 0 {
				_, err = listed(tt.old, tt.new)
			} else {
				_, err = parse(base(t, tt.old, tt.new))
			}
			var problems *workflow.Problems
			require.ErrorAs(t, err, &problems, "not found")
			for _, p := range problems.List {
				if p.Line == max(tt.line, -tt.line) && strings.Contains(p.Message+" → "+p.Remedy, tt.word) {
					return
				}
			}
			require.Fail(t, "not found in its line, in its words", "line %d, %q: %v", tt.line, tt.word, err)
		})
	}
}

// One slip is one problem: what only follows from it is not said.
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
	for _, tt := range []struct{ old, new, message, remedy string }{
		{"$START", "START", `the graph has a node "START", but there is no such role`, `did you mean "$START"?`},
		{"$START", "$start", `the graph has a node "$start", but there is no such role`, `did you mean "$START"?`},
		{"frontmatter", "frontmater", `role "a" has no key "frontmater"`, `did you mean "frontmatter"?`},
		{"maxSteps: 20", `maxSteps: "20"`, `maxSteps must be a whole number from 1, but this is the text "20"`, "maxSteps: 20, without quotes"},
		{"    done: { role: $END, prompt: \"{{{text}}}\" }\n", "    _: { role: $END }\n  done:\n    role: $END\n    prompt: \"{{{text}}}\"\n",
			`"done" looks like an edge, but stands where a node must`, "indent it, with what is in it, below its node"},
	} {
		_, err := workflow.Parse(workflow.Source{File: "one.yaml", Data: []byte(strings.Replace(whole, tt.old, tt.new, 1))})
		var problems *workflow.Problems
		require.ErrorAs(t, err, &problems, tt.new)
		require.Len(t, problems.List, 1, "%s: %v", tt.new, err)
		require.Equal(t, tt.message, problems.List[0].Message)
		require.Equal(t, tt.remedy, problems.List[0].Remedy)
	}
}
