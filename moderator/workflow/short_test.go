package workflow_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// pairs lists workflows in short form with their long form.
func pairs() []struct{ name, short, long string } {
	const top = "name: base\ndescription: d\n"
	return []struct{ name, short, long string }{
		{"edges", top + `
roles:
  plan: { description: Plans, goal: g, schema: { type: object, properties: { $status: { enum: [ready, role] }, what: { type: string } }, required: [$status, what] } }
  write: { description: Writes, goal: g, schema: { type: object, properties: { text: { type: string } }, required: [text] } }
  both: { description: b, all: { a: { role: write }, b: { role: write } } }
  ask: { description: a, person: true, schema: { type: object, properties: { $status: { const: ok }, status: { type: string } }, required: [$status] } }
  last: { description: l, goal: g, schema: { type: object, properties: { role: { type: string } } } }
graph:
  $START: { role: plan, prompt: "{{$prompt}}", location: src }
  plan: { ready: write, role: write }
  write: { role: both, prompt: "{{text}}" }
  both: { done: ask, failed: $END }
  ask: last
  last: $END
`, top + `
roles:
  plan: { description: Plans, goal: g, schema: { type: object, properties: { $status: { enum: [ready, role] }, what: { type: string } }, required: [$status, what] } }
  write: { description: Writes, goal: g, schema: { type: object, properties: { text: { type: string } }, required: [text] } }
  both: { description: b, all: { a: { role: write }, b: { role: write } } }
  ask: { description: a, person: true, schema: { type: object, properties: { $status: { const: ok }, status: { type: string } }, required: [$status] } }
  last: { description: l, goal: g, schema: { type: object, properties: { role: { type: string } } } }
graph:
  $START: { _: { role: plan, prompt: "{{$prompt}}", location: src } }
  plan: { ready: { role: write }, role: { role: write } }
  write: { _: { role: both, prompt: "{{text}}" } }
  both: { done: { role: ask }, failed: { role: $END } }
  ask: { _: { role: last } }
  last: { _: { role: $END } }
`},
		{"the prompt of a role", top + `
roles:
  plan: { prompt: "Plan it: {{$prompt}}" }
  write: { description: Writes, prompt: Write it., goal: g }
  ask: { prompt: "Is it right?", person: true, schema: { type: object, properties: { $status: { enum: [y, n] } }, required: [$status] } }
  parts: { all: { a: { role: write }, b: { role: write, prompt: Another. } } }
  items: { each: { of: "[1]", role: write } }
graph:
  $START: { _: plan, resume: plan }
  plan: [{ role: write, when: "depth > 3" }, { role: ask, when: depth = 1, prompt: Really? }, { role: parts, when: "depth > 5" }, items]
  write: { _: ask }
  ask: { "y": parts, "n": write }
  parts: { done: items, failed: $END }
  items: { done: { role: $END, prompt: bye }, failed: $END }
`, top + `
roles:
  plan: { description: "", goal: "" }
  write: { description: Writes, goal: g }
  ask: { description: "", person: true, schema: { type: object, properties: { $status: { enum: [y, n] } }, required: [$status] } }
  parts: { description: "", all: { a: { role: write, prompt: Write it. }, b: { role: write, prompt: Another. } } }
  items: { description: "", each: { of: "[1]", role: write, prompt: Write it. } }
graph:
  $START: { _: { role: plan, prompt: "Plan it: {{$prompt}}" }, resume: { role: plan, prompt: "Plan it: {{$prompt}}" } }
  plan: [{ role: write, when: "depth > 3", prompt: Write it. }, { role: ask, when: depth = 1, prompt: Really? }, { role: parts, when: "depth > 5" }, { role: items }]
  write: { _: { role: ask, prompt: "Is it right?" } }
  ask: { "y": parts, "n": { role: write, prompt: Write it. } }
  parts: { done: items, failed: $END }
  items: { done: { role: $END, prompt: bye }, failed: $END }
`},
		{"answers", top + `
roles:
  a:
    prompt: p
    answer:
      $status: [one]
      n: integer
      x: number
      tags: [string]
      files: [{ file: string, line: integer? }]
      why: string?
      k: integer = 2
      s: string = main
      q: string = "a = b"
      e: string =
      f: number = 0.5
      b: boolean = true
      size: [small, large]
      digit: [1, 2, 3]
      raw: { schema: { type: string, minLength: 2 } }
      o: { a: object, schema: string }
      none: {}
      lists: [[string]]
  b: { prompt: p, person: true, answer: {} }
graph: { $START: a, a: b, b: $END }
`, top + `
roles:
  a:
    description: ""
    goal: ""
    schema:
      type: object
      properties:
        $status: { enum: [one] }
        n: { type: integer }
        x: { type: number }
        tags: { type: array, items: { type: string } }
        files: { type: array, items: { type: object, properties: { file: { type: string }, line: { type: integer } }, required: [file] } }
        why: { type: string }
        k: { type: integer, default: 2 }
        s: { type: string, default: main }
        q: { type: string, default: "a = b" }
        e: { type: string, default: "" }
        f: { type: number, default: 0.5 }
        b: { type: boolean, default: true }
        size: { enum: [small, large] }
        digit: { enum: [1, 2, 3] }
        raw: { type: string, minLength: 2 }
        o: { type: object, properties: { a: { type: object }, schema: { type: string } }, required: [a, schema] }
        none: { type: object, properties: {} }
        lists: { type: array, items: { type: array, items: { type: string } } }
      required: [$status, n, x, tags, files, size, digit, raw, o, none, lists]
  b: { description: "", person: true, schema: { type: object, properties: {} } }
graph: { $START: { _: { role: a, prompt: p } }, a: { _: { role: b, prompt: p } }, b: { _: $END } }
`},
		{"inputs", top + `
inputs: { issue: string, base: string = main, tags: [string], level: [low, high], old: { schema: { type: integer }, default: 3 } }
roles: { a: { prompt: "{{$inputs.issue}}" } }
graph: { $START: a, a: $END }
`, top + `
inputs:
  issue: { schema: { type: string } }
  base: { schema: { type: string }, default: main }
  tags: { schema: { type: array, items: { type: string } } }
  level: { schema: { enum: [low, high] } }
  old: { schema: { type: integer }, default: 3 }
roles: { a: { description: "", goal: "" } }
graph: { $START: { _: { role: a, prompt: "{{$inputs.issue}}" } }, a: { _: $END } }
`},
		{"parts", top + `
roles:
  a: { prompt: p }
  build: { run: [make] }
  both: { all: [a, build] }
  named: { all: { a: a, b: build } }
graph: { $START: both, both: { done: named, failed: $END }, named: { done: $END, failed: $END } }
`, top + `
roles:
  a: { description: "", goal: "" }
  build: { description: "", run: [make] }
  both: { description: "", all: { a: { role: a, prompt: p }, build: { role: build } } }
  named: { description: "", all: { a: { role: a, prompt: p }, b: { role: build } } }
graph: { $START: { _: both }, both: { done: named, failed: $END }, named: { done: $END, failed: $END } }
`},
		{"what is collected", top + `
roles:
  a: { prompt: p, answer: { text: string } }
  build: { run: [make] }
  both: { all: [a, build], collect: true, workspace: worktree, merge: true }
graph:
  $START: both
  both: { done: { role: $END, prompt: "{{a.text}}: {{build.output}}" }, failed: { role: $END, prompt: "{{#errors}}{{part}}: {{error}}{{/errors}}" }, conflict: $END }
`, top + `
roles:
  a: { description: "", goal: "", schema: &a { type: object, properties: { text: { type: string } }, required: [text] } }
  build: { description: "", run: [make] }
  both:
    description: ""
    all: { a: { role: a, prompt: p }, build: { role: build } }
    workspace: worktree
    merge: true
    join: '{"$status": "failed" in results.status ? "failed" : "done", "errors": [results[status = "failed"].{"part": key, "error": error}], "a": results[key = "a"].output, "build": results[key = "build"].output}'
    schema:
      oneOf:
        - type: object
          properties:
            $status: { const: done }
            errors: &errors { type: array, items: { type: object, required: [part], properties: { part: { type: string }, error: { type: string } } } }
            a: *a
            build: &build { type: object, additionalProperties: false, required: [$status, exitCode, output, truncated], properties: { $status: { type: string, enum: [passed, failed] }, exitCode: { type: integer }, output: { type: string }, truncated: { type: boolean } } }
          required: [$status, errors, a, build]
        - type: object
          properties: { $status: { const: failed }, errors: *errors, a: *a, build: *build }
          required: [$status, errors]
        - type: object
          properties: { $status: { const: conflict }, files: { type: array, items: { type: string } } }
          required: [$status, files]
graph:
  $START: { _: both }
  both: { done: { role: $END, prompt: "{{a.text}}: {{build.output}}" }, failed: { role: $END, prompt: "{{#errors}}{{part}}: {{error}}{{/errors}}" }, conflict: $END }
`},
		{"data of any kind", top + `
roles: { a: { run: [make], parse: json } }
graph: { $START: a, a: { role: $END, prompt: "{{anything}}" } }
`, top + `
roles: { a: { description: "", run: [make], parse: json, schema: { type: object, additionalProperties: true } } }
graph: { $START: { _: a }, a: { _: { role: $END, prompt: "{{anything}}" } } }
`},
	}
}

// TestShortForms checks that the short and the long form are stored as identical bytes.
func TestShortForms(t *testing.T) {
	t.Parallel()
	for _, p := range pairs() {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			short, err := parse(p.short)
			require.NoError(t, err)
			long, err := parse(p.long)
			require.NoError(t, err)
			prosetest.Text(t, strings.Join(short.Notices, "\n"))
			short.Notices, long.Notices = nil, nil
			require.Equal(t, long, short)
			require.Zero(t, short.Language)
		})
	}
}

// TestStatusesThatLookLikeKeys checks that a node keeps its meaning if its role can answer "role" or any
// text.
func TestStatusesThatLookLikeKeys(t *testing.T) {
	t.Parallel()
	for status, edges := range map[string][]string{
		"enum: [role, prompt]": {"role", "prompt"}, "const: role": {"role"}, "type: string": {"role", "location"},
	} {
		node := strings.Join(edges, ": a, ") + ": $END"
		def, err := parse("name: base\ndescription: d\nroles:\n  a: { description: d, goal: g, schema: { type: object, properties: { $status: { " +
			status + " } }, required: [$status] } }\ngraph: { $START: a, a: { " + node + " } }\n")
		require.NoError(t, err, status)
		require.ElementsMatch(t, edges, slices.Collect(maps.Keys(def.Graph["a"].Edges)), status)
	}
}

// TestMistakesInShortForms checks that a mistake in a short form is reported at its position, with a remedy.
func TestMistakesInShortForms(t *testing.T) {
	t.Parallel()
	const whole = `name: base
description: d
inputs: { issue: string }
roles:
  plan: { prompt: "Plan {{$inputs.issue}}.", answer: { $status: [ready, unclear], why: string } }
  write: { prompt: "Write it{{#why}}: {{why}}{{/why}}", answer: { text: string } }
  make: { run: [make] }
  parts: { all: [write, make], collect: true }
graph:
  $START: plan
  plan: { ready: write, unclear: parts }
  write: make
  make: { passed: parts, failed: $END }
  parts: { done: $END, failed: $END }
`
	replace := func(edits []string) string {
		text := whole
		for i := 0; i < len(edits); i += 2 {
			text = replaceOnce(text, edits[i], edits[i+1])
		}
		return text
	}
	_, err := parse(replace([]string{"{{#why}}: {{why}}{{/why}}", ": {{why}}"}))
	require.ErrorContains(t, err, `base.yaml:6:31: prompt of all[write] of role "parts", by graph[make][passed]`, "the variable must exist on each way to it")
	for i, edits := range [][]string{
		{"{ ready: write, unclear: parts }", "write"},
		{"  $START: plan", "  $START: plam"},
		{"  write: make\n", "  write: { role: make, when: depth > 2 }\n"},
		{"  write: make\n", "  write: { to: make }\n"},
		{"  write: make\n", "  write: { role: make, ready: parts }\n"},
		{"  write: make\n", "  write: { prompt: p }\n"},
		{"  write: make\n", "  write: [make, parts]\n"},
		{"{ issue: string }", "[issue]"},
		{"issue: string", "issue:"},
		{"issue: string", "isue: string"},
		{"issue: string", "issue: text"},
		{"issue: string", "issue: string?"},
		{"issue: string", "issue: integer = one"},
		{"issue: string", "issue: [string, integer]"},
		{"issue: string", "issue: The number of it"},
		{"text: string }", "text: string? = x }"},
		{"text: string }", "text: }"},
		{"text: string }", "text: strng }"},
		{"text: string }", "text: 5 }"},
		{"text: string }", "text: [] }"},
		{"text: string }", "text: [string?] }"},
		{"text: string }", "text: [done] }"},
		{"text: string }", "text: [a, { b: string }] }"},
		{"text: string }", "text: { inner: strin } }"},
		{"text: string }", "text: { schema: { type: strin } } }"},
		{"text: string }", "text: string, then more }"},
		{"$status: [ready, unclear]", "$status: [string]"},
		{"$status: [ready, unclear]", "$status: [true, 2]"},
		{"$status: [ready, unclear]", "$status: ready"},
		{"$status: [ready, unclear]", "$status: []"},
		{"answer: { text: string }", "answer: string"},
		{"answer: { text: string }", "answer: { text: string }, meta: { type: object }"},
		{"  make: { run: [make] }", "  make: { run: [make], answer: { a: string } }"},
		{"  make: { run: [make] }", "  make: { run: [make], parse: frontmatter }"},
		{"[write, make]", "[write, write]"},
		{"[write, make]", "[write, { role: make }]"},
		{"[write, make]", "{ errors: write }"},
		{"[write, make]", "{ a: ./other.yaml }"},
		{"[write, make]", "{ a: writ }"},
		{"collect: true", "collect: yes"},
		{"collect: true", "collect: true, join: results"},
		{"all: [write, make], collect", "each: { of: '[1]', role: write }, collect"},
		{`prompt: "Write it{{#why}}: {{why}}{{/why}}"`, `prompt: " "`},
		{`prompt: "Write it{{#why}}: {{why}}{{/why}}", `, ""},
		{`prompt: "Write it{{#why}}: {{why}}{{/why}}", `, "goal: g, "},
		{"  make: { run: [make] }", "  make: { person: true, prompt: Sure? }"},
	} {
		t.Run(fmt.Sprint(i+1), func(t *testing.T) {
			t.Parallel()
			_, err := parse(replace(edits))
			prosetest.Text(t, problemLines(t, err), "%q → %q", edits[0], edits[1])
		})
	}
}
