package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

// players has a command, a command that prints data, a person, an agent and inputs.
const players = `name: base
description: Who plays.
inputs:
  branch: { schema: { type: string }, default: main, description: Of git }
  quick: { schema: { type: boolean }, default: false }
  issue: { schema: { type: integer } }
roles:
  agent: { description: d, goal: g, frontmatter: { type: object, properties: { dir: { type: string } }, required: [dir] } }
  tests: { description: d, run: [go, test, "./{{dir}}", 5, true], timeout: 90m }
  lint: { description: d, run: [lint, --, "{{$inputs.branch}}"], parse: json, frontmatter: { type: object, properties: { $status: { enum: [ok, bad] } }, required: [$status] } }
  gate: { description: d, person: true, frontmatter: { type: object, properties: { $status: { enum: [yes, no] } }, required: [$status] } }
graph:
  $START: { _: agent }
  agent: { _: { role: tests, prompt: "On {{$inputs.branch}}." } }
  tests: { passed: lint, failed: agent }
  lint: [{ role: gate, condition: "$inputs.quick = false" }, { role: agent }]
  gate: { "yes": $END, "no": agent }
`

func TestPlayers(t *testing.T) {
	t.Parallel()
	def, err := parse(players)
	require.NoError(t, err)
	require.Empty(t, def.Notices)
	require.Equal(t, protocol.Role{Description: "d", Capabilities: []string{}, Run: []string{"go", "test", "./{{dir}}", "5", "true"}, TimeoutMs: 5_400_000}, def.Roles["tests"])
	require.Equal(t, moderator.CommandSchema(), def.Schemas["tests"])
	require.Equal(t, protocol.ParseJSON, def.Roles["lint"].Parse)
	require.Equal(t, protocol.PlayedByPerson, def.Roles["gate"].Player())
	require.Equal(t, protocol.Role{Description: "d", Goal: "g", Capabilities: []string{}}, def.Roles["agent"])
	require.Equal(t, map[string]protocol.Input{
		"branch": {Default: "main", Description: "Of git"}, "quick": {Default: false}, "issue": {},
	}, def.Inputs)
	require.NoError(t, editorSchema(t).Validate(value(t, players)))
}

// A mistake in a role that isn't an agent is reported at its position, with a remedy.
func TestProblemsOfPlayers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit []string
	}{
		"a command as a number":       {[]string{`[go, test, "./{{dir}}", 5, true]`, "5"}},
		"a shell for words":           {[]string{"timeout: 90m", "shell: bash"}},
		"no program":                  {[]string{`[go, test, "./{{dir}}", 5, true]`, "[]"}},
		"a goal of a command":         {[]string{"timeout: 90m", "goal: g"}},
		"a time":                      {[]string{"90m", "90"}},
		"data that is not printed":    {[]string{"parse: json, ", ""}},
		"a way to print":              {[]string{"parse: json", "parse: xml"}},
		"a command and a person":      {[]string{"person: true", "person: true, run: [x]"}},
		"a person who is not":         {[]string{"person: true", "person: Ada"}},
		"a status of a command":       {[]string{"tests: { passed: lint", "tests: { pass: lint"}},
		"a field that is not there":   {[]string{"./{{dir}}", "./{{dri}}"}},
		"an input that is not there":  {[]string{"On {{$inputs.branch}}", "On {{$inputs.brunch}}"}},
		"a default that does not fit": {[]string{"default: false", "default: maybe"}},
		"an input without a schema":   {[]string{"schema: { type: integer }", "description: x"}},
		"a name with a hyphen":        {[]string{"  issue:", "  the-issue:"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(replaceOnce(players, test.edit[0], test.edit[1]))
			prosetest.Text(t, problemLines(t, err))
		})
	}
}

// If an answer selects a command's program, its author can run anything.
func TestAProgramThatAnAnswerChoosesIsNoted(t *testing.T) {
	t.Parallel()
	for run, noted := range map[string]bool{`["{{dir}}"]`: true, `["{{$inputs.branch}}"]`: false, `["./{{dir}}/check"]`: true, `[sh, "{{dir}}"]`: false} {
		def, err := workflow.Parse(workflow.Source{Data: []byte(replaceOnce(players, `[go, test, "./{{dir}}", 5, true]`, run))})
		require.NoError(t, err)
		require.Equal(t, noted, len(def.Notices) == 1, run)
	}
}

// A command that plays a part can use its prompt, but neither the item nor other roles' answers.
func TestACommandThatPlaysAPart(t *testing.T) {
	t.Parallel()
	const parts = `name: base
description: Parts.
roles:
  list: { description: d, goal: g, frontmatter: { type: object, properties: { items: { type: array, items: { type: object } } }, required: [items] } }
  work: { description: d, run: [echo, "{{prompt}}", "{{$status}}"] }
  workers: { description: d, each: { of: meta.items, role: work, prompt: "{{item.n}}" } }
  other: { description: d, run: [echo, x] }
  pair: { description: d, all: { a: { role: other, prompt: "{{results.length}}" } } }
graph:
  $START: { _: list }
  list: { _: workers }
  workers: { done: pair, failed: $END }
  pair: { done: $END, failed: $END }
`
	_, err := parse(parts)
	require.NoError(t, err)
	for name, test := range map[string]struct{ from, to string }{
		"an item":          {`"{{prompt}}"`, `"{{item.n}}"`},
		"an answer":        {`"{{prompt}}"`, `"{{items.length}}"`},
		"an input":         {`"{{prompt}}"`, `"{{$inputs.n}}"`},
		"an answer in all": {`[echo, x]`, `[echo, "{{results.length}}"]`},
		"an item in all":   {`[echo, x]`, `[echo, "{{item}}"]`},
	} {
		_, err := parse(replaceOnce(parts, test.from, test.to))
		prosetest.Text(t, strings.Join(problemLines(t, err), "\n"), name)
	}
}
