package workflowdiff_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/moderator/workflowdiff"
	"github.com/united-workforce/uwf/protocol"
)

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

// TestEachPart changes one part of a file at a time and checks the reported change.
func TestEachPart(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ what, old, new, want string }{
		{"nothing", "", "", ""},
		{"only the order of keys", "name: ask\ndescription: d\n", "description: d\nname: ask\n", ""},
		{"the name", "name: ask", "name: asked", "~ name\n    - ask\n    + asked\n"},
		{"a line of a procedure", "      two\n", "      TWO\n", "~ role clerk: procedure\n      one\n    - two\n    + TWO\n      three\n      four\n      …\n"},
		{"capabilities", "[a, b]", "[b, a]", "~ role clerk: capabilities\n    - [\"a\",\"b\"]\n    + [\"b\",\"a\"]\n"},
		{"the type of a field", "day: { type: string }", "day: { type: integer }", "~ role clerk: schema done.day.type\n    - string\n    + integer\n"},
		{"an optional field", ", note: { type: string }", "", "- role clerk: schema done.note\n    {\"type\":\"string\"}\n"},
		{"what is required", "required: [$status, question]", "required: [$status]", "- role clerk: schema asks.question.required\n    true\n"},
		{"the order of a list", "required: [$status, question]", "required: [question, $status]", "~ role clerk: schema asks.(order)\n"},
		{"items", "items: { type: string }", "items: { type: string, minLength: 1 }", "+ role judge: schema list.items.minLength\n    1\n"},
		{"where an edge leads", "judge: { _: $END }", "judge: { _: { role: $END, prompt: Bye. } }", "+ edge judge _: prompt\n    Bye.\n"},
		{"a limit", "maxSteps: 5", "maxSteps: 7, maxVisitsPerRole: 2", "~ limit maxSteps\n    - 5\n    + 7\n+ limit maxVisitsPerRole\n    2\n"},
		{"what cannot be seen", "goal: g", `goal: "g\n"`, "~ role clerk: goal\n    - \"g\"\n    + \"g\\n\"\n"},
		{"control characters", "goal: g", `goal: "\x1b[2J"`, "~ role clerk: goal\n    - g\n    + \\u001b[2J\n"},
		{"all limits", "limits: { maxSteps: 5 }\n", "", "- limit maxSteps\n    5\n"},
	} {
		require.Contains(t, base, c.old, c.what)
		a, b := parse(t, base), parse(t, strings.Replace(base, c.old, c.new, 1))
		got := workflowdiff.Text(workflowdiff.Compare(a, b))
		if c.want == "" {
			require.Empty(t, got, c.what)
			continue
		}
		require.True(t, strings.HasPrefix(got, c.want), "%s:\n%s", c.what, got)
		require.NotEmpty(t, workflowdiff.Compare(b, a), c.what)
	}
}

func TestRolesAndStatusesThatCameAndWent(t *testing.T) {
	t.Parallel()
	a := parse(t, base)
	b := parse(t, strings.NewReplacer(
		"  judge:\n    description: Judges.", "  jury:\n    description: Twelve.",
		"role: judge", "role: jury", "judge: { _: $END }", "jury: { _: $END }",
		"const: asks", "const: lost", "asks: { role: $SUSPEND, prompt: \"{{question}}\" }", "lost: clerk",
	).Replace(base))
	require.Equal(t, `+ role clerk: schema lost
    {"properties":{"$status":{"const":"lost"},"question":{"type":"string"}},"required":["$status","question"]}
- role clerk: schema asks
    {"properties":{"$status":{"const":"asks"},"question":{"type":"string"}},"required":["$status","question"]}
+ role jury
    Twelve.
- role judge
    Judges.
~ edge clerk done: role
    - judge
    + jury
+ edge clerk lost
    to clerk
- edge clerk asks
    to $SUSPEND
    {{question}}
+ edge jury _
    to $END
- edge judge _
    to $END
`, workflowdiff.Text(workflowdiff.Compare(a, b)))
}

func TestListsOfTransitions(t *testing.T) {
	t.Parallel()
	to := func(role, condition string) protocol.Transition {
		return protocol.Transition{Edge: protocol.Edge{Role: role}, Condition: condition}
	}
	with := func(list ...protocol.Transition) workflow.Definition {
		return workflow.Definition{Workflow: protocol.Workflow{
			Conditions: map[string]protocol.Condition{"tired": {Expression: "depth > 3"}},
			Graph:      map[string]protocol.GraphNode{"a": {Transitions: list}},
		}}
	}
	a := with(to("x", "tired"), to("y", "bad"), to("y", "bad"), to("$END", ""))
	require.Empty(t, workflowdiff.Compare(a, a))
	require.Equal(t, "~ edge a tired: role\n    - x\n    + z\n- edge a bad (2)\n    to y\n~ edge a (order)\n    - [\"tired\",\"bad\",\"(otherwise)\"]\n    + [\"bad\",\"tired\",\"(otherwise)\"]\n",
		workflowdiff.Text(workflowdiff.Compare(a, with(to("y", "bad"), to("z", "tired"), to("$END", "")))))
	b := a
	b.Conditions = map[string]protocol.Condition{"tired": {Expression: "depth > 4", Description: "Enough."}}
	require.Equal(t, "+ condition tired: description\n    Enough.\n~ condition tired: expression\n    - depth > 3\n    + depth > 4\n",
		workflowdiff.Text(workflowdiff.Compare(a, b)))
	b = with()
	b.Graph["a"] = protocol.GraphNode{Edges: map[string]protocol.Edge{"_": {Role: "x"}}}
	require.Contains(t, workflowdiff.Text(workflowdiff.Compare(a, b)), "~ graph of a\n")
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
		require.Empty(t, workflowdiff.Compare(a, a))
		b, err := workflow.Parse(workflow.Source{Data: []byte(other)})
		if err != nil {
			return
		}
		changes := workflowdiff.Compare(a, b)
		require.Equal(t, stored(t, a) == stored(t, b), len(changes) == 0, "%v", changes)
		workflowdiff.Text(changes)
	})
}

// stored returns everything a store keeps of a definition.
func stored(t *testing.T, def workflow.Definition) string {
	t.Helper()
	data, err := json.Marshal([]any{def.Workflow, def.Schemas, def.InputSchemas})
	require.NoError(t, err)
	return string(data)
}

func TestPlayersAndInputs(t *testing.T) {
	t.Parallel()
	const before = `name: x
description: d
inputs: { branch: { schema: { type: string }, default: main }, old: { schema: { type: string }, default: a } }
roles: { go: { description: d, run: [make, test] } }
graph: { $START: { _: go }, go: { passed: $END, failed: $END } }
`
	after := strings.NewReplacer("default: main", "default: next", "old:", "new:", "[make, test]", "[make], timeout: 5s").Replace(before)
	changes := workflowdiff.Compare(parse(t, before), parse(t, after))
	var got []string
	for _, c := range changes {
		got = append(got, string(c.Op)+" "+strings.Join(c.Path, "."))
	}
	require.Equal(t, []string{"changed inputs.branch.default", "added inputs.new", "removed inputs.old", "changed roles.go.run", "added roles.go.timeoutMs"}, got)
	require.Empty(t, workflowdiff.Compare(parse(t, before), parse(t, before)))
}

// Every field of a role is compared.
func TestEachFieldOfARole(t *testing.T) {
	t.Parallel()
	role := reflect.TypeFor[protocol.Role]()
	of := func(r protocol.Role) workflow.Definition {
		return workflow.Definition{Workflow: protocol.Workflow{Roles: map[string]protocol.Role{"a": r}}}
	}
	for i := range role.NumField() {
		var r protocol.Role
		v := reflect.ValueOf(&r).Elem().Field(i)
		switch v.Kind() {
		case reflect.String:
			v.SetString("x")
		case reflect.Bool:
			v.SetBool(true)
		case reflect.Int, reflect.Int64:
			v.SetInt(1)
		case reflect.Slice:
			v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		case reflect.Map:
			v.Set(reflect.MakeMap(v.Type()))
		default:
			v.Set(reflect.New(v.Type().Elem()))
		}
		changes := workflowdiff.Compare(of(protocol.Role{}), of(r))
		require.Len(t, changes, 1, role.Field(i).Name)
		require.Equal(t, workflowdiff.Added, changes[0].Op)
	}
}
