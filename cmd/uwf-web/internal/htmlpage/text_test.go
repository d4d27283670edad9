package htmlpage_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cmd/uwf-web/internal/htmlpage"
	"github.com/united-workforce/uwf/protocol"
)

// Templates show hostile texts and never execute them.
func TestHostileTexts(t *testing.T) {
	t.Parallel()
	templates, err := htmlpage.Templates()
	require.NoError(t, err)
	for name, text := range map[string]string{
		"script":        `</pre><script>alert(1)</script>`,
		"svg":           `<svg onload=alert(1)>`,
		"attribute":     `"><img src=x onerror=alert(1)>`,
		"javascript":    `javascript:alert(1)`,
		"markdown":      "[x](javascript:alert(1)) ![y](http://example.com/z.png)",
		"css":           `</style><style>*{display:none}</style>`,
		"right to left": "a\u202eb",
		"control":       "a\x00\x1bb",
	} {
		h, l := htmlpage.TextOf(text, 1000), htmlpage.Line(text, 100)
		var b strings.Builder
		step := htmlpage.Step{
			Role: l, Agent: l, By: l, Status: l, Model: l, Prompt: h, Data: h, Answer: h, Problem: h.Body, Changes: []htmlpage.Change{{Mark: "+", Text: h.Body}},
			Turns: []htmlpage.Turn{{Who: l, Content: h, Reasoning: h, Error: h.Body, Calls: []htmlpage.Call{{Name: l, Args: h}}}},
		}
		require.NoError(t, templates.ExecuteTemplate(&b, "step", step), name)
		for _, part := range []string{"headline", "facts", "outcome", "task"} {
			require.NoError(t, templates.ExecuteTemplate(&b, part, htmlpage.Thread{Title: l, Workflow: l, Cwd: l, Asker: l, Asks: h, Problem: h, Words: h, Role: l, Task: h}), name)
		}
		for _, never := range []string{"<script", "<svg o", "<img", "<style", `href="java`, "\x1b", "\x00"} {
			require.NotContains(t, b.String(), never, name)
		}
	}
}

func TestLongTextsAreCutInTheirMiddle(t *testing.T) {
	t.Parallel()
	long := "begin" + strings.Repeat("ü", 1<<20) + "end"
	cut := htmlpage.TextOf(long, 1000)
	require.True(t, strings.HasPrefix(cut.Body, "begin") && strings.HasSuffix(cut.Body, "end"))
	require.True(t, utf8.ValidString(cut.Body))
	require.Less(t, len(cut.Body), 1100)
	require.Greater(t, cut.Cut, 2<<20-1100)
	require.Zero(t, htmlpage.TextOf("short", 1000).Cut)
	require.LessOrEqual(t, utf8.RuneCountInString(htmlpage.Line(long, 80)), 80)
}

// A status of a command is as good as uwf or the workflow says.
func TestCommandMood(t *testing.T) {
	t.Parallel()
	w := protocol.Workflow{Graph: map[string]protocol.GraphNode{
		"lint": {Edges: map[string]protocol.Edge{"clean": {Role: protocol.EndNode}, "broken": {Role: protocol.FailNode}, "failed": {Role: "fixer"}}},
		"list": {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: protocol.FailNode}}}},
	}}
	for _, test := range []struct{ role, status, want string }{
		{"lint", "passed", "good"}, {"lint", "failed", "bad"}, {"lint", "clean", "plain"}, {"lint", "broken", "bad"},
		{"list", "broken", "plain"}, {"nobody", "", "plain"},
	} {
		require.Equal(t, test.want, htmlpage.CommandMood(w, test.role, test.status), "%s %s", test.role, test.status)
	}
}
