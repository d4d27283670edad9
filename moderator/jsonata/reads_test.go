package jsonata_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator/jsonata"
)

func TestReads(t *testing.T) {
	t.Parallel()
	tests := []struct {
		expression, paths string
		whole             bool
		unbound, bound    string
	}{
		{expression: "meta.approved = false", paths: "meta.approved"},
		{expression: "steps[-1].output.approved = false", paths: "steps.output.approved:1"},
		{expression: "steps[-2].a and steps[-1].b", paths: "steps.a:2 steps.b:1"},
		{expression: "(steps[-1]).a", paths: "steps:1"},
		{expression: "steps[-1][role='x']", paths: "steps:1"},
		{expression: "steps[0].a", paths: "steps.a"},
		{expression: "steps[depth].a", paths: "steps.a"},
		{expression: "steps[-0.5].a", paths: "steps.a"},
		{expression: "$count(history[role = 'dev']) > $$.depth", paths: "history depth"},
		{expression: "history[meta.x = $$.meta.x].role", paths: "history.role meta.x"},
		{expression: "history.(role & $$.role)", paths: "history role"},
		{expression: "$.meta.x", paths: "meta.x"},
		{expression: "meta.$", paths: "meta"},
		{expression: "meta.*", paths: "meta"},
		{expression: "meta[$.a].b", paths: "meta.b"},
		{expression: "$", whole: true},
		{expression: "*", whole: true},
		{expression: "**.approved", whole: true},
		{expression: "$keys($)", whole: true},
		{expression: "$string()", whole: true},
		{expression: "history.$string()", paths: "history"},
		{expression: "$exists(meta.x) and meta.y", paths: "meta.x? meta.y"},
		{expression: "meta ~> $keys", paths: "meta"},
		{expression: "($x := history; $count($x))", paths: "history"},
		{expression: "($x := $; $x.steps)", whole: true},
		{expression: "meta.$status = 'done'", paths: "meta", unbound: "status", bound: "status"},
		{expression: "$steps.plan.size > depth", paths: "depth", unbound: "steps", bound: "steps.plan.size"},
		{expression: "$steps.plan[x = 1].a & $exists($steps.fix.b)", unbound: "steps steps", bound: "steps.plan.a steps.fix.b?"},
		{expression: "'a' = $steps.plan.kind", unbound: "steps", bound: "steps.plan.kind=a"},
		{expression: "$steps.`a-b`.c.*", unbound: "steps", bound: "steps.a-b.c"},
		{expression: "$steps.*", unbound: "steps", bound: "steps"},
		{expression: "$steps.(plan)", unbound: "steps", bound: "steps"},
		{expression: "$steps[plan.x].plan", unbound: "steps", bound: "steps"},
		{expression: "$lookup($steps, 'plan')", unbound: "steps", bound: "steps"},
		{expression: "($s := $steps; $s.plan)", unbound: "steps", bound: "steps"},
		{expression: "($steps := meta; $steps.plan)", paths: "meta"},
		{expression: "$body = ''", unbound: "body", bound: "body"},
		{expression: "meta.`$status` = 'done'", paths: "meta.$status=done"},
		{expression: "history{role: $count(meta)}", paths: "history"},
		{expression: "{'a': depth}.a", paths: "depth"},
		{expression: "[1..depth]", paths: "depth"},
		{expression: "depth > 1 ? role : meta", paths: "depth role meta"},
	}
	for _, tt := range tests {
		t.Run(tt.expression, func(t *testing.T) {
			t.Parallel()
			x, err := jsonata.Parse(tt.expression)
			require.NoError(t, err)
			got := x.Reads()
			var unbound []string
			shown := func(list []jsonata.Path) string {
				var paths []string
				for _, p := range list {
					text := strings.Join(p.Names, ".")
					if p.Newest > 0 {
						text += ":" + string(rune('0'+p.Newest))
					}
					if p.Tested {
						text += "?"
					}
					if p.Equals != "" {
						text += "=" + p.Equals
					}
					paths = append(paths, text)
				}
				return strings.Join(paths, " ")
			}
			for _, n := range got.Unbound {
				unbound = append(unbound, n.Text)
			}
			require.Equal(t, tt.paths, shown(got.Paths))
			require.Equal(t, tt.bound, shown(got.Bound))
			require.Equal(t, tt.whole, got.All)
			require.Equal(t, tt.unbound, strings.Join(unbound, " "))
		})
	}
}
