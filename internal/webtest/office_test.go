//go:build browser

package webtest

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/stretchr/testify/require"
)

// office is a home with realistic content: decisions with forms of several kinds, failures of several kinds,
// long Markdown, changes of many files, a fan-out of 200 children, and what newTeam makes.
type office struct {
	team
	announce string // waits: two choices, one of them with a text; the answer before it is long Markdown
	ship     string // waits: three choices; the step before it changed twelve files
	triage   string // waits: a form with numbers, lists and texts
	question string // waits: an agent asks a question in words
	refused  string // completed; the first answer of its reviewer was rejected
	gaveUp   string // failed: a role chose $FAIL
	limited  string // suspended at its step limit
	checks   string // suspended: 20 of its 200 children failed
}

const announceFlow = `name: announce
description: Writes an announcement; a person approves it.
roles:
  writer: { description: Writes the announcement, goal: You write announcements for customers. }
  editor:
    description: A person reads the announcement
    person: true
    schema:
      oneOf:
        - { type: object, properties: { $status: { const: publish } }, required: [$status] }
        - { type: object, properties: { $status: { const: revise }, changes: { type: string, description: What should change } }, required: [$status, changes] }
graph:
  $START: writer
  writer: { role: editor, prompt: "Publish this announcement? It goes to **4,200 customers** at 17:00." }
  editor:
    publish: { role: $END, prompt: "Published." }
    revise: { role: writer, prompt: "Change this: {{changes}}" }
`

// article is long Markdown with everything that agents write.
var article = `# Exports are ten times faster

Version 2.4 writes exports **in parallel**. You don't have to change anything.

## What changed

1. Exports of more than 10,000 rows are split into parts.
2. Each part is compressed while the next one is read.
   - CSV and JSON are supported.
   - Excel files are still written *in one part*.
3. ~~The old format~~ remains available until June.

| rows | 2.3 | 2.4 |
| ---: | ---: | ---: |
| 10,000 | 4.1 s | 0.6 s |
| 100,000 | 41 s | 4.2 s |
| 1,000,000 | 7 min | 41 s |

` + "```go\nfunc Export(ctx context.Context, rows Rows) error {\n\tg, ctx := errgroup.WithContext(ctx)\n\tfor part := range rows.Split(10_000) {\n\t\tg.Go(func() error { return write(ctx, part) })\n\t}\n\treturn g.Wait()\n}\n```" + `

> Exports that were started before the update keep the old format.

See [the documentation](https://docs.example.org/exports) and ![the chart](https://docs.example.org/chart.png).
` + strings.Repeat("\n## Questions and answers\n\n**Do I have to export again?** No. Files that you have downloaded stay valid, and links to them keep working for 30 days.\n", 6)

const shipFlow = `name: ship
description: Makes a change; a person ships it, asks for changes or drops it.
roles:
  developer: { description: Makes the change, goal: You make small changes with tests. }
  check: { description: Runs the tests, run: [sh, -c, "echo ok  stats 0.012s"] }
  owner:
    description: A person decides
    person: true
    answer: { $status: [ship, change, drop] }
graph:
  $START: developer
  developer: check
  check: { passed: { role: owner, prompt: "Ship the rename of Median to MedianOf? The tests pass." }, failed: developer }
  owner: { ship: $END, change: developer, drop: $END }
`

const triageFlow = `name: triage
description: A person assigns a report.
roles:
  reader: { description: Reads the report, goal: You summarize bug reports., answer: { summary: string, component: string, reproduced: boolean, seen: integer } }
  lead:
    description: A person assigns the report
    person: true
    schema:
      type: object
      properties:
        severity: { enum: [critical, high, medium, low, none], description: How bad it is }
        estimate: { type: integer, minimum: 1, description: Hours }
        assignee: { type: string }
        comment: { type: string, description: "For the person who works on it" }
      required: [severity, assignee]
graph:
  $START: reader
  reader: { role: lead, prompt: "Who takes this report? {{summary}}" }
  lead: $END
`

const checkFlow = `name: check-package
description: Checks one package.
roles:
  check: { description: Checks the licence, run: [sh, -c, 'case "$1" in *7) echo "$1: the licence is missing"; exit 1;; esac; echo "$1: ok"', check, "{{$prompt}}"] }
graph:
  $START: check
  check: { passed: { role: $END, prompt: "{{output}}" }, failed: { role: $FAIL, prompt: "{{output}}" } }
`

const checksFlow = `name: check-packages
description: Checks every package on its own.
roles:
  all:
    each: { of: "[1..200].('pkg-' & $)", workflow: ./check-package.yaml, prompt: "{{item}}" }
    parallel: 8
graph:
  $START: all
  all: { done: $END, failed: { role: $SUSPEND, prompt: "Some packages failed their check. Continue without them?" } }
`

const simpleFlow = `name: NAME
description: DESCRIPTION
roles:
  author: { description: Does the work, goal: You do the work. }
  reviewer: { description: Reviews the work, goal: You review the work., answer: { $status: [approved, rejected], why: string } }
graph:
  $START: author
  author: { role: reviewer, prompt: "Review it." }
  reviewer: { approved: { role: $END, prompt: "{{why}}" }, rejected: { role: $FAIL, prompt: "The review found a problem that nobody can fix here: {{why}}" } }
`

// changelogFlow is a workflow of the project that has inputs; it is started from a form.
const changelogFlow = `name: changelog
description: Writes the changelog of a version.
inputs:
  version: { schema: { type: string, pattern: "^v[0-9]" }, description: Such as v1.2.0 }
  audience: { schema: { enum: [users, developers] }, default: users }
  entries: integer = 10
roles:
  writer: { description: Writes the changelog, goal: You write changelogs. }
  count: { description: Counts the lines, run: [sh, -c, "sleep 2; echo 3 lines"] }
graph:
  $START: { role: writer, prompt: "Write the changelog of {{$inputs.version}} for {{$inputs.audience}}. {{$prompt}}" }
  writer: count
  count: { passed: { role: $END, prompt: "The changelog of {{$inputs.version}} is written." }, failed: $FAIL }
`

// newOffice makes an office in a git repository.
func newOffice(w *world) office {
	w.Helper()
	o := office{team: newTeam(w, 6)}
	simple := strings.NewReplacer("NAME", "port", "DESCRIPTION", "Ports a module to the new interface.").Replace(simpleFlow)
	for name, text := range map[string]string{
		"announce.yaml": announceFlow, "ship.yaml": shipFlow, "triage.yaml": triageFlow, "check-package.yaml": checkFlow, "check-packages.yaml": checksFlow,
		"short.yaml": strings.NewReplacer("name: two", "name: short", "graph:", "limits: { maxSteps: 1 }\ngraph:").Replace(two), "port.yaml": simple, ".workflows/changelog.yaml": changelogFlow,
	} {
		path := filepath.Join(w.home, name)
		require.NoError(w, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(w, os.WriteFile(path, []byte(text), 0o600))
	}
	o.script(map[string]any{"output": article, "usage": usage(21_400, 2_900, 0.42)})
	o.announce = o.uwf("run", "./announce.yaml", "-p", "Announce the faster exports of version 2.4", "--workspace", "none")

	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("stats/part%02d.go", i)] = "package stats\n\n" + strings.Repeat(fmt.Sprintf("// MedianOf%d returns the median.\nfunc MedianOf%d(values []float64) float64 { return middle(values) }\n\n", i, i), 1+i)
	}
	o.script(map[string]any{
		"files": files, "output": "Median is now called **MedianOf** in all twelve parts. Callers are updated; the tests pass.", "usage": usage(64_200, 5_100, 0.87),
		"turns": []any{
			map[string]any{"say": "I look for all callers first."},
			map[string]any{"tool": "run_command", "args": map[string]any{"command": "grep -rn Median ."}, "result": strings.Repeat("stats/part00.go:3: func Median(\n", 12)},
			map[string]any{"tool": "edit_file", "args": map[string]any{"path": "stats/part00.go"}, "result": "edited"},
		},
	})
	o.ship = o.uwf("run", "./ship.yaml", "-p", "Rename Median to MedianOf", "--workspace", "worktree")

	o.script(map[string]any{"value": map[string]any{"summary": "The export stops after 65,536 rows.", "component": "export", "reproduced": true, "seen": 14}, "usage": usage(8_000, 300, 0.05)})
	o.triage = o.uwf("run", "./triage.yaml", "-p", "Report 4711: the export is incomplete", "--workspace", "none")

	o.script(map[string]any{"suspend": "Should `median` of an empty list be **0** or an error?\n\n- 0 is what version 1 returned.\n- An error is what the other functions return.", "usage": usage(3_000, 200, 0.02)})
	o.question = o.uwf("run", "./port.yaml", "-p", "Port median to the new interface", "--workspace", "none")

	approved := map[string]any{"$status": "approved", "why": "The tests cover both cases."}
	o.script(map[string]any{"output": "Ported.", "usage": usage(12_000, 900, 0.2)},
		map[string]any{"value": map[string]any{"$status": "nope"}, "corrections": []any{map[string]any{"value": approved}}, "usage": usage(9_000, 400, 0.1)})
	o.refused = o.uwf("run", "./port.yaml", "-p", "Port mean to the new interface", "--workspace", "none")

	o.script(map[string]any{"output": "I could not port it.", "usage": usage(12_000, 900, 0.2)},
		map[string]any{"value": map[string]any{"$status": "rejected", "why": "mode needs a type that the new interface doesn't have."}, "usage": usage(9_000, 400, 0.1)})
	o.gaveUp = o.uwf("run", "./port.yaml", "-p", "Port mode to the new interface", "--workspace", "none")

	o.play(script)
	o.limited = o.uwf("run", "./short.yaml", "-p", "a summary of all reports", "--workspace", "none")
	o.checks = o.uwf("run", "./check-packages.yaml", "-p", "Check the licences", "--workspace", "none")
	return o
}

// script replaces the mock agent's script.
func (t team) script(steps ...any) {
	t.Helper()
	data, err := json.Marshal(map[string]any{"steps": steps}) // JSON is YAML
	require.NoError(t, err)
	t.play(string(data))
}

func usage(in, out int, cost float64) map[string]any {
	return map[string]any{"inputTokens": in, "outputTokens": out, "costUsd": cost}
}
