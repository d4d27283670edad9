package workflow_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
)

// An enum of statuses in a oneOf variant counts as one variant for each status.
func TestSeveralStatusesOfAVariant(t *testing.T) {
	t.Parallel()
	const supervisor = `name: base
description: d
roles:
  boss:
    prompt: p
    schema:
      oneOf:
        - { type: object, properties: { $status: { enum: [research, code] }, task: { type: string } }, required: [$status, task] }
        - { type: object, properties: { $status: { const: done }, result: { type: string } }, required: [$status, result] }
  worker: { description: d, goal: g }
graph:
  $START: boss
  boss: { research: { role: worker, prompt: "{{task}}" }, code: { role: worker, prompt: "{{task}}" }, done: { role: $END, prompt: "{{result}}" } }
  worker: boss
`
	def, err := parse(supervisor)
	require.NoError(t, err)
	require.Empty(t, def.Notices)
	for _, edit := range [][2]string{
		{"code: { role: worker, prompt: \"{{task}}\" }, ", ""},
		{"{ role: $END, prompt: \"{{result}}\" }", "{ role: $END, prompt: \"{{task}}\" }"},
		{"enum: [research, code]", "enum: [1, 2]"},
		{"enum: [research, code]", "type: string"},
	} {
		_, err := parse(replaceOnce(supervisor, edit[0], edit[1]))
		prosetest.Text(t, problemLines(t, err), edit[1])
	}
}

// A join that gives a bare value for a single result is detected even if its role has several answers.
func TestListsOfOneBehindOneOf(t *testing.T) {
	t.Parallel()
	const file = `name: base
description: d
roles:
  worker: { description: d, goal: g, schema: { type: object, properties: { n: { type: integer } }, required: [n] } }
  spread:
    each: { of: "[1, 2]", role: worker }
    join: "JOIN"
    schema:
      properties: { more: { type: array } }
      oneOf:
        - { type: object, properties: { $status: { enum: [done, some] }, checks: CHECKS }, required: [$status, checks] }
        - { type: object, properties: { $status: { const: none }, checks: { type: array } }, required: [$status] }
graph: { $START: spread, spread: { done: $END, some: $END, none: $END } }
`
	for _, c := range []struct {
		join, checks string
		wrong        bool
	}{
		{"{'$status': 'done', 'checks': results.{'n': item}}", "{ type: array }", true},
		{"{'$status': 'done', 'checks': [results.{'n': item}]}", "{ type: array }", false},
		{"{'$status': 'done', 'checks': results.{'n': item}}", "{ type: object }", false},
		{"{'$status': 'none', 'checks': results.{'n': item}}", "{ type: object }", true},
		{"{'$status': 'done', 'more': results.{'n': item}}", "{ type: array }", true},
		{"{'checks': results.{'n': item}}", "{ type: array }", true},
	} {
		_, err := parse(strings.NewReplacer("JOIN", c.join, "CHECKS", c.checks).Replace(file))
		if !c.wrong {
			require.NoError(t, err, c.join)
			continue
		}
		prosetest.Text(t, problemLines(t, err), c.join)
	}
}
