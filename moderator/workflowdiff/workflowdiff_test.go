package workflowdiff_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/util/prosetest"
)

func TestMain(m *testing.M) { os.Exit(prosetest.Run(m)) }

func parse(t *testing.T, text string) workflow.Definition {
	t.Helper()
	def, err := workflow.Parse(workflow.Source{Data: []byte(text)})
	require.NoError(t, err)
	return def
}

const base = `name: ask
description: d
roles:
  clerk:
    description: Asks.
    goal: g
    capabilities: [a, b]
    procedure: |
      one
      two
      three
      four
      five
    output: o
    frontmatter:
      type: object
      oneOf:
        - { properties: { $status: { const: done }, day: { type: string }, note: { type: string } }, required: [$status, day] }
        - { properties: { $status: { const: asks }, question: { type: string } }, required: [$status, question] }
  judge:
    description: Judges.
    goal: g
    capabilities: []
    procedure: p
    output: o
    frontmatter: { type: object, properties: { list: { type: array, items: { type: string } } } }
graph:
  $START: { _: clerk }
  clerk:
    done: { role: judge, prompt: "Judge {{day}}" }
    asks: { role: $SUSPEND, prompt: "{{question}}" }
  judge: { _: $END }
limits: { maxSteps: 5 }
`

// compare returns the changes as "op path: old > new", and the lines.
func compare(t *testing.T, a, b workflow.Definition) (changes []string, lines string) {
	t.Helper()
	all, text, err := workflowdiff.Compare(a, b)
	require.NoError(t, err)
	for _, c := range all {
		was, err := json.Marshal([]any{c.Old, c.New})
		require.NoError(t, err)
		changes = append(changes, string(c.Op)+" "+strings.Join(c.Path, ".")+" "+string(was))
	}
	require.Equal(t, len(all) == 0, len(text) == 0)
	return changes, strings.Join(text, "\n")
}

// TestEachPart changes one part of a file at a time and checks the reported change.
func TestEachPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, old, new, want string }{
		{"nothing", "", "", ""},
		{"only the order of keys", "name: ask\ndescription: d\n", "description: d\nname: ask\n", ""},
		{"the name", "name: ask", "name: asked", `changed name ["ask","asked"]`},
		{"capabilities", "[a, b]", "[b, a]", `changed roles.clerk.capabilities [["a","b"],["b","a"]]`},
		{"where an edge leads", "judge: { _: $END }", "judge: { _: $FAIL }", `changed graph.judge._ ["$END","$FAIL"]`},
		{"an edge's prompt", "judge: { _: $END }", "judge: { _: { role: $END, prompt: Bye. } }", `changed graph.judge._ ["$END",{"prompt":"Bye.","role":"$END"}]`},
		{"a limit", "maxSteps: 5", "maxSteps: 7", `changed limits.maxSteps [5,7]`},
		{"control characters", "goal: g", `goal: "\x1b[2J"`, `changed roles.clerk.goal ["g","\u001b[2J"]`},
		{"all limits", "limits: { maxSteps: 5 }\n", "", `removed limits [{"maxSteps":5},null]`},
	} {
		require.Contains(t, base, c.old, c.what)
		a, b := parse(t, base), parse(t, strings.Replace(base, c.old, c.new, 1))
		changes, _ := compare(t, a, b)
		require.Equal(t, c.want, strings.Join(changes, "\n"), c.what)
		back, _ := compare(t, b, a)
		require.Len(t, back, len(changes), c.what)
	}
	for _, c := range []struct{ old, new string }{
		{"day: { type: string }", "day: { type: integer }"}, {", note: { type: string }", ""},
		{"required: [$status, question]", "required: [$status]"}, {"required: [$status, question]", "required: [question, $status]"},
		{"items: { type: string }", "items: { type: string, minLength: 1 }"}, {"goal: g", `goal: "g\n"`},
	} {
		require.Contains(t, base, c.old)
		changes, _ := compare(t, parse(t, base), parse(t, strings.Replace(base, c.old, c.new, 1)))
		require.NotEmpty(t, changes, c.new)
	}
}

// The lines show what changed and the keys that lead there.
func TestLines(t *testing.T) {
	t.Parallel()
	_, lines := compare(t, parse(t, base), parse(t, strings.Replace(base, "      four\n", "      FOUR\n", 1)))
	prosetest.Text(t, lines)
	require.Equal(t, []string{"  …", "  b", "  c", "- d", "+ D", "  e", "  f", "  …"}, workflowdiff.Lines("a\nb\nc\nd\ne\nf\ng\n", "a\nb\nc\nD\ne\nf\ng\n"))
}

// FuzzCompare checks that two files have no differences exactly if they are stored as the same node.
func FuzzCompare(f *testing.F) {
	files, err := filepath.Glob("../../examples/*.yaml")
	require.NoError(f, err)
	for _, file := range files {
		data, err := os.ReadFile(file)
		require.NoError(f, err)
		f.Add(string(data), base)
		f.Add(string(data), strings.Replace(string(data), "type: string", "type: integer", 1))
	}
	f.Add(base, strings.Replace(base, "limits: { maxSteps: 5 }", "limits: {}", 1))
	f.Fuzz(func(t *testing.T, one, other string) {
		a, err := workflow.Parse(workflow.Source{Data: []byte(one)})
		if err != nil {
			return
		}
		same, _ := compare(t, a, a)
		require.Empty(t, same)
		b, err := workflow.Parse(workflow.Source{Data: []byte(other)})
		if err != nil {
			return
		}
		changes, _ := compare(t, a, b)
		require.Equal(t, stored(t, a) == stored(t, b), len(changes) == 0, "%v", changes)
	})
}

// stored returns everything a store keeps of a definition.
func stored(t *testing.T, def workflow.Definition) string {
	t.Helper()
	data, err := json.Marshal([]any{def.Workflow, def.Schemas, def.InputSchemas})
	require.NoError(t, err)
	return string(data)
}
