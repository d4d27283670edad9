package workflow_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/workflow"
	"github.com/united-workforce/uwf/util/prosetest"
)

const head = "name: x\ndescription: d\nroles:\n"

// role returns a role on one line.
func role(name, schema string) string {
	return fmt.Sprintf("  %s: {description: d, goal: g, capabilities: [], procedure: p, output: o, frontmatter: {%s}}\n", name, schema)
}

// each repeats a text n times, replacing # with the index and @ with the next index.
func each(n int, format string) string {
	var b strings.Builder
	for i := range n {
		b.WriteString(strings.NewReplacer("#", fmt.Sprint(i), "@", fmt.Sprint(i+1)).Replace(format))
	}
	return b.String()
}

// prompt returns a workflow with one role and this prompt on its outgoing edge.
func prompt(schema, text string) string {
	return head + role("a", schema) + "graph:\n  $START: {_: a}\n  a:\n    _: {role: $END, prompt: '" + text + "'}\n"
}

// listOf returns a workflow with one role and these transitions.
func listOf(entries string) string {
	return head + role("a", "type: object") + "graph:\n  $START: {_: a}\n  a: [" + entries + "]\n"
}

// With quadratic behavior, each of these would take minutes or gigabytes. The bounds are generous in case the
// machine is busy.
func TestHostileFilesAreRefusedOrReadFast(t *testing.T) {
	// Not parallel, because allocations of other tests would count.
	const object = "type: object"
	files := map[string]struct {
		text  string
		valid bool
	}{
		"10,000 roles without content": {head + each(10_000, "  r#: {}\n") + "graph: {$START: {_: r0}}\n", false},
		"5,000 good roles in a row": {head + each(5_001, role("r#", object)) + "graph:\n  $START: {_: r0}\n" +
			each(5_000, "  r#: {_: r@}\n") + "  r5000: {_: $END}\n", true},
		"20,000 statuses, 20,000 other edges": {head + role("a", object+", properties: {$status: {enum: ["+each(20_000, "s#,")+"]}}") +
			"graph:\n  $START: {_: a}\n  a:\n" + each(20_000, "    e#: $END\n"), false},
		"4,000 variants, each with its edge": {head + role("a", "oneOf: ["+each(4_000, "{properties: {$status: {const: s#}}},")+"]") +
			"graph:\n  $START: {_: a}\n  a:\n" + each(4_000, "    s#: {role: $END, prompt: '{{x}}'}\n"), false},
		"2,000 roles that name each other's answers": {head + each(2_000, role("r#", object)) + "graph:\n  $START: {_: r0}\n" +
			each(1_999, "  r#: {_: {role: r@, prompt: '{{$steps.r#}}{{$steps.r0}}{{^$steps.r1999}}x{{/$steps.r1999}}y'}}\n") + "  r1999: {_: $END}\n", true},
		"a role of 4,000 variants whose answer 3,000 name": {head + role("a", "oneOf: ["+each(4_000, "{properties: {$status: {const: s#}}},")+"]") + role("b", object) +
			"graph:\n  $START: {_: a}\n  a:\n" + each(4_000, "    s#: b\n") + "  b: [" + each(3_000, "{role: $END, when: '$steps.a.x# = #', prompt: 'x{{$steps.a.$status}}'},") + "$END]\n", true},
		"a text of 1 MB":                 {prompt(object, strings.Repeat("x", 1_000_000)), true},
		"a name of 900 kB":               {"name: " + strings.Repeat("x", 900_000), false},
		"a role's name of 900 kB":        {head + role(strings.Repeat("x", 900_000), object) + "graph: {$START: {_: $END}}", false},
		"5 MB":                           {strings.Repeat("a: b\n", 1_000_000), false},
		"190,000 tags":                   {prompt(object, strings.Repeat("{{a}}", 190_000)), false},
		"9,000 wrong variables":          {prompt(object, each(9_000, "{{v#}}")), false},
		"100,000 open sections":          {prompt(object, strings.Repeat("{{#a}}", 100_000)), false},
		"a path of 400,000 parts":        {prompt(object, "{{"+strings.Repeat("a.", 400_000)+"a}}"), false},
		"a schema of 30,000 choices":     {prompt(object+", anyOf: ["+strings.Repeat("{},", 30_000)+"]", each(9_000, "{{v#}}")), false},
		"200,000 brackets":               {strings.Repeat("[", 200_000), false},
		"a condition of 900 kB":          {listOf("{role: $END, condition: '" + strings.Repeat("meta.x + ", 100_000) + "1'}"), false},
		"a condition of 30,000 brackets": {listOf("{role: $END, condition: '" + strings.Repeat("(", 30_000) + "'}"), false},
		"a condition of 5,000 sums":      {listOf("{role: $END, condition: '" + strings.Repeat("depth + ", 5_000) + "1'}"), false},
		"20,000 transitions":             {listOf(strings.Repeat("{role: $END, condition: depth = 1},", 20_000)), true},
		"10,000 conditions, all wrong":   {head + role("a", object) + "conditions:\n" + each(10_000, "  c#: 'x +'\n") + "graph: {$START: {_: a}, a: {_: $END}}\n", false},
		"a name with a line's end":       {head + role("a", object) + "conditions: {\"a\\nb\": depth}\ngraph: {$START: {_: a}, a: {_: $END}}\n", false},
		"a role's prompt of 400 kB on 10,000 edges": {head + "  a: {prompt: " + strings.Repeat("x", 400_000) + "}\n" +
			"graph: {$START: a, a: [" + strings.Repeat("{role: a, when: depth = 1},", 10_000) + "$END]}\n", false},
		"5,000 parts with 5,000 fields each": {head + "  a: {prompt: x, answer: {" + each(5_000, "f#: string,") + "}}\n  b: {collect: true, all: {" +
			each(5_000, "p#: a,") + "}}\ngraph: {$START: b, b: $END}\n", false},
		"1,000 parts with 2 fields each": {head + "  a: {prompt: x, answer: {" + each(2, "f#: string,") + "}}\n  b: {collect: true, all: {" +
			each(1_000, "p#: a,") + "}}\ngraph: {$START: b, b: $END}\n", true},
		"an answer of 1,000 fields":    {head + "  a: {prompt: x, answer: {" + each(1_000, "f#: integer = 1,") + "}}\ngraph: {$START: a, a: $END}\n", true},
		"an alias bomb":                {"a: &a [1,1,1,1,1,1,1,1,1]\n" + bomb(9), false},
		"a schema that leads to files": {prompt(object+", properties: {p: {$ref: 'file:///etc/passwd'}}", "x"), false},
	}
	for name, f := range files {
		t.Run(name, func(t *testing.T) {
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			began := time.Now()
			_, err := workflow.Parse(workflow.Source{File: "x.yaml", Data: []byte(f.text)})
			took := time.Since(began)
			runtime.ReadMemStats(&after)
			if f.valid {
				require.NoError(t, err)
			} else {
				prosetest.Error(t, err)
				require.Less(t, len(err.Error()), 100_000, "a report that a person can read")
			}
			require.Less(t, took, time.Minute)
			require.Less(t, after.TotalAlloc-before.TotalAlloc, uint64(500<<20), "with the race detector, which empties pools at random")
		})
	}
}

// bomb doubles an alias again and again.
func bomb(rounds int) string {
	var b strings.Builder
	for i := range rounds {
		from, to := 'a'+rune(i), 'a'+rune(i+1)
		fmt.Fprintf(&b, "%c: &%c [%s]\n", to, to, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", from), 9), ","))
	}
	return b.String()
}

func TestLongLinesAreCutInTheReport(t *testing.T) {
	t.Parallel()
	_, err := workflow.Parse(workflow.Source{Data: []byte(prompt("type: object", strings.Repeat("é", 1000)+"{{nix}}"+strings.Repeat("é", 1000)))})
	var problems *workflow.Problems
	require.ErrorAs(t, err, &problems)
	excerpt := problems.List[0].Excerpt
	require.Contains(t, excerpt, "{{nix}}")
	require.True(t, strings.HasPrefix(excerpt, "…") && strings.HasSuffix(excerpt, "…"))
	require.LessOrEqual(t, len([]rune(excerpt)), 162)
}

func BenchmarkParse300Lines(b *testing.B) {
	const roles = 14
	text := head + each(roles, "  r#:\n    description: Does part # of the work\n    goal: |\n      You do part #.\n      You do it well.\n"+
		"    capabilities: [one, two]\n    procedure: |\n      1. Read what there is.\n      2. Do part #.\n      3. Check it.\n    output: What was done.\n"+
		"    frontmatter:\n      type: object\n      oneOf:\n        - properties: { $status: { const: done }, summary: { type: string } }\n          required: [$status, summary]\n"+
		"        - properties: { $status: { const: failed }, reason: { type: string } }\n          required: [$status, reason]\n") +
		"graph:\n  $START: { _: r0 }\n" + each(roles, "  r#:\n    done: { role: r@, prompt: \"Done: {{summary}}\" }\n    failed: { role: r0, prompt: \"{{reason}}\" }\n")
	text = strings.Replace(text, fmt.Sprintf("role: r%d,", roles), "role: $END,", 1)
	b.ReportMetric(float64(strings.Count(text, "\n")), "lines")
	for b.Loop() {
		if _, err := workflow.Parse(workflow.Source{Data: []byte(text)}); err != nil {
			b.Fatal(err)
		}
	}
}
