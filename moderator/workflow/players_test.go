package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/protocol"
)

// players has a command, one that prints data, a person, an agent and inputs.
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

// Whoever gets a role that is no agent wrong is told where, and what would be right.
func TestProblemsOfPlayers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		edit []string
		want string
	}{
		"a command as one text":       {[]string{`[go, test, "./{{dir}}", 5, true]`, "go test ./..."}, `9:33: run of role "tests" must be a list of words, but this is the text "go test ./..." → run: [go, test, ./...]`},
		"a shell's command":           {[]string{`[go, test, "./{{dir}}", 5, true]`, "make | tail"}, `9:33: run of role "tests" must be a list of words, but this is the text "make | tail" → there is no shell; name one if it is needed: run: [sh, -c, "make | tail"]`},
		"no program":                  {[]string{`[go, test, "./{{dir}}", 5, true]`, "[]"}, `9:33: run of role "tests" names no program → run: [go, test, ./...]`},
		"a goal of a command":         {[]string{"timeout: 90m", "goal: g"}, `9:67: role "tests" has no key "goal" → the keys here are "description", "parse", "timeout", "run", "person", "workflow", "all", "each", "frontmatter", "meta", "outputSchema"`},
		"a time":                      {[]string{"90m", "90"}, `9:76: timeout of role "tests" must be a time, but this is the number 90 → such as 90s or 10m`},
		"data that is not printed":    {[]string{"parse: json, ", ""}, `10:79: role "lint" has "frontmatter", but it does not say that its command prints data → add "parse: json" or "parse: frontmatter" if the command prints the data, or leave it out: a command answers $status passed or failed, exitCode, output and truncated`},
		"a way to print":              {[]string{"parse: json", "parse: xml"}, `10:73: parse of role "lint" cannot be "xml" → parse: json, or parse: frontmatter`},
		"a command and a person":      {[]string{"person: true", "person: true, run: [x]"}, `11:35: role "gate" has both "run" and "person": only one of them can play it → keep one of them`},
		"a person who is not":         {[]string{"person: true", "person: Ada"}, `11:35: person of role "gate" must be true, but this is the text "Ada" → person: true, or leave it out`},
		"a status of a command":       {[]string{"tests: { passed: lint", "tests: { pass: lint"}, `15:12: "tests" never answers "pass" → did you mean "passed"?`},
		"a field that is not there":   {[]string{"./{{dir}}", "./{{dri}}"}, `9:47: run[2] of role "tests", by graph[agent][_]: variable "dri" does not exist: the frontmatter of "agent" has no such field → did you mean "dir"?`},
		"an input that is not there":  {[]string{"On {{$inputs.branch}}", "On {{$inputs.brunch}}"}, `14:42: prompt of graph[agent][_]: "$inputs.brunch" is not an input → did you mean "$inputs.branch" or "$inputs.quick"?`},
		"a default that does not fit": {[]string{"default: false", "default: maybe"}, `5:48: the default of input "quick" does not fit its schema: must be true or false, but is "maybe"`},
		"an input without a schema":   {[]string{"schema: { type: integer }", "description: x"}, `6:3: input "issue" has no "schema" → add "schema": the JSON Schema of its value, such as {type: string}`},
		"a name with a hyphen":        {[]string{"  issue:", "  the-issue:"}, `6:3: the input name "the-issue" cannot be used in templates and conditions → letters, digits and _, beginning with a letter`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := parse(replaceOnce(players, test.edit[0], test.edit[1]))
			require.Contains(t, told(t, err), test.want)
		})
	}
}

// A program that an answer chooses is whatever who answers wants.
func TestAProgramThatAnAnswerChoosesIsNoted(t *testing.T) {
	t.Parallel()
	for run, noted := range map[string]bool{`["{{dir}}"]`: true, `["{{$inputs.branch}}"]`: false, `["./{{dir}}/check"]`: true, `[sh, "{{dir}}"]`: false} {
		def, err := workflow.Parse(workflow.Source{Data: []byte(replaceOnce(players, `[go, test, "./{{dir}}", 5, true]`, run))})
		require.NoError(t, err)
		require.Equal(t, noted, len(def.Notices) == 1, run)
	}
}

// A command that plays a part knows what it is told, and neither the item nor what others
// have answered.
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
	const knows = `the thread of a part knows only its prompt and the inputs`
	for name, test := range map[string]struct{ from, to, want string }{
		"an item":          {`"{{prompt}}"`, `"{{item.n}}"`, `5:40: run[1] of role "work", as each of role "workers": variable "item.n" does not exist: ` + knows + ` → write prompt: "{{item.n}}" in each of role "workers", and {{prompt}} here`},
		"an answer":        {`"{{prompt}}"`, `"{{items.length}}"`, `run[1] of role "work", as each of role "workers": variable "items.length" does not exist: ` + knows},
		"an input":         {`"{{prompt}}"`, `"{{$inputs.n}}"`, `"$inputs.n" is not an input`},
		"an answer in all": {`[echo, x]`, `[echo, "{{results.length}}"]`, `7:41: run[1] of role "other", as all[a] of role "pair": variable "results.length" does not exist: ` + knows + ` → write prompt: "{{results.length}}" in all[a] of role "pair", and {{prompt}} here`},
		"an item in all":   {`[echo, x]`, `[echo, "{{item}}"]`, `variable "item" does not exist: ` + knows + ` → an item is there only in what a child of "each" is told`},
	} {
		_, err := parse(replaceOnce(parts, test.from, test.to))
		require.Contains(t, strings.Join(told(t, err), "\n"), test.want, name)
	}
}
