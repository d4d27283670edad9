package moderator_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/moderator"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/fuzztest"
	"github.com/united-workforce/uwf/util/prosetest"
)

// step returns a step of a history.
func step(role string, output any) moderator.HistoryStep {
	return moderator.HistoryStep{Role: role, Output: given(output)}
}

// earlier returns a thread of plan → test → fix. The first two roles answered more than once, and the newest
// step is followed by edge.
func earlier(edge protocol.Edge) moderator.State {
	s := after("test", obj("$status", "failed", "output", "boom\n"))
	s.Workflow = protocol.Workflow{
		Language: protocol.Language3,
		Roles: map[string]protocol.Role{
			"plan": {}, "test": {Run: []string{"make"}}, "fix": {}, "ask": {Person: true},
			"use":    {Run: []string{"echo", "{{$steps.plan.slug}}", "{{$steps.test.output}}!", "{{$steps.plan.long}}"}},
			"spread": {All: map[string]protocol.ChildRole{"a": {Role: "fix", Prompt: "{{$steps.plan.slug}}"}, "b": {Workflow: "0000000000001", Inputs: map[string]any{"x": "{{$steps.plan.list}}", "y": "{{$body}}."}}}},
			"each":   {Each: &protocol.EachRole{Of: "$steps.plan.list", ChildRole: protocol.ChildRole{Role: "fix", Prompt: "{{item}} of {{$steps.plan.slug}}"}}, Join: "{'n': $count(results), 'slug': $steps.plan.slug, 'none': $exists($steps.fix)}"},
		},
		Graph: map[string]protocol.GraphNode{"test": edges("failed", edge)},
	}
	s.History = past(
		step("test", s.Last.Output),
		step("plan", obj("$status", "$SUSPEND", "reason", "why?")),
		moderator.HistoryStep{Role: "plan", Output: given(obj("slug", "failed")), Failed: true},
		step("plan", obj("slug", "new", "long", "a\n\n", "list", []any{"p", "q"})),
		step("test", obj("output", "old")),
		step("plan", obj("slug", "old", "only", "old")),
	)
	return s
}

func TestEarlierAnswers(t *testing.T) {
	t.Parallel()
	for template, want := range map[string]string{
		"{{$steps.plan.slug}} {{output}}":                                    "new boom\n",
		"{{#$steps.plan}}{{slug}}{{/$steps.plan}}":                           "new",
		"{{#$steps.fix}}no{{/$steps.fix}}{{^$steps.fix}}none{{/$steps.fix}}": "none",
		"{{#$steps.plan.list}}<{{.}}>{{/$steps.plan.list}}":                  "<p><q>",
		"{{#$steps}}{{plan.slug}}{{/$steps}}":                                "new",
		"[{{$body}}]":                                                        "[]",
	} {
		d, err := moderator.Next(t.Context(), earlier(protocol.Edge{Role: "$END", Prompt: template}))
		require.NoError(t, err, template)
		require.Equal(t, want, d.Prompt, template)
	}
	for _, template := range []string{"{{$steps.fix.x}}", "{{$steps.plan.only}}", "{{$steps.plan.slgu}}", "{{$steps.nobody}}"} {
		_, err := moderator.Next(t.Context(), earlier(protocol.Edge{Role: "$END", Prompt: template}))
		prosetest.Error(t, err)
	}
	d, err := moderator.Next(t.Context(), earlier(protocol.Edge{Role: "use", Prompt: "x", Location: "{{$steps.plan.long}}"}))
	require.NoError(t, err)
	require.Equal(t, []string{"echo", "new", "boom!", "a"}, d.Command)
	require.Equal(t, "a", d.Location)
	d, err = moderator.Next(t.Context(), earlier(protocol.Edge{Role: "spread", Prompt: "x"}))
	require.NoError(t, err)
	require.Contains(t, d.Children[0].Prompt, "new")
	require.Equal(t, map[string]any{"x": []any{"p", "q"}, "y": "."}, d.Children[1].Inputs)
	s := earlier(protocol.Edge{Role: "each", Prompt: "x"})
	d, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Len(t, d.Children, 2)
	require.Contains(t, d.Children[1].Prompt, "of")
	joined, err := moderator.Join(t.Context(), s, "each", []moderator.Result{{Key: "p", Status: "done"}}, true)
	require.NoError(t, err)
	require.Equal(t, obj("n", int64(1), "slug", "new", "none", false), joined)
}

// In expressions a missing answer has no value.
func TestEarlierAnswersInConditions(t *testing.T) {
	t.Parallel()
	for expression, want := range map[string]bool{
		"$steps.plan.slug = 'new'": true, "$steps.fix.x = 1": false, "$steps.fix": false, "$count($keys($steps)) = 2": true,
		"$steps.plan.slug & $steps.test.`$status` = 'newfailed'": true, "$body = ''": true, "$contains($body, 'x')": false,
		"($steps := {'plan': {'slug': 'own'}}; $steps.plan.slug) = 'own'": true,
	} {
		s := earlier(protocol.Edge{})
		s.Workflow.Graph["test"] = protocol.GraphNode{Transitions: []protocol.Transition{when(expression, "$END", "yes"), when("", "$END", "no")}}
		d, err := moderator.Next(t.Context(), s)
		require.NoError(t, err, expression)
		require.Equal(t, want, d.Prompt == "yes", expression)
	}
}

// The fields of an answer take precedence. In workflows of an earlier version the names have no special
// meaning.
func TestNamesInAnswersGoFirst(t *testing.T) {
	t.Parallel()
	s := earlier(protocol.Edge{Role: "$END", Prompt: "{{#$steps}}{{plan.slug}}{{/$steps}}{{$body}}"})
	s.Last.Output = obj("$status", "failed", "$steps", obj("plan", obj("slug", "own")), "$body", "its")
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "ownits", d.Prompt)
	s.Workflow.Graph["test"] = edges("failed", protocol.Edge{Role: "$END", Prompt: "{{$steps.plan.list}}"})
	_, err = moderator.Next(t.Context(), s)
	require.Error(t, err, "not even those that it lacks")

	s = earlier(protocol.Edge{Role: "$END", Prompt: "x{{#$steps}}{{plan.slug}}{{/$steps}}"})
	s.Workflow.Language = 0
	d, err = moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "x", d.Prompt)
}

func TestBody(t *testing.T) {
	t.Parallel()
	s := earlier(protocol.Edge{})
	s.Workflow.Graph["plan"] = edges("_", protocol.Edge{Role: "ask", Prompt: "Publish this? {{$body}}"})
	s.Last = &moderator.Last{Role: "plan", Output: obj()}
	s.Body = func() (string, error) { return "All of it.", nil }
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "Publish this? All of it.", d.Prompt)
	broken := errors.New("redacted")
	s.Body = func() (string, error) { return "", broken }
	_, err = moderator.Next(t.Context(), s)
	require.ErrorIs(t, err, broken)
	s.Workflow.Graph["plan"] = edges("_", protocol.Edge{Role: "ask", Prompt: "Publish?"})
	_, err = moderator.Next(t.Context(), s)
	require.NoError(t, err, "it is read only if it is used")
}

// Only commands get the artifacts directory itself. Prompts contain the name of its variable, so that the
// stored text is the same on every machine.
func TestArtifactsVariable(t *testing.T) {
	t.Parallel()
	s := earlier(protocol.Edge{Role: "use", Prompt: "Read {{$artifacts}}/plan.md."})
	s.Artifacts = "/home/artifacts/T"
	s.Workflow.Roles["use"] = protocol.Role{Run: []string{"cat", "{{$artifacts}}/plan.md"}}
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "Read $UWF_ARTIFACTS_DIR/plan.md.", d.Prompt)
	require.Equal(t, []string{"cat", "/home/artifacts/T/plan.md"}, d.Command)
	s.Workflow.Graph["test"] = edges("failed", protocol.Edge{Role: "use", Prompt: "x", Location: "{{$artifacts}}"})
	_, err = moderator.Next(t.Context(), s)
	require.Error(t, err)
	s.Workflow.Graph["test"] = edges("failed", protocol.Edge{Role: "spread", Prompt: "x"})
	s.Workflow.Roles["spread"] = protocol.Role{All: map[string]protocol.ChildRole{"b": {Workflow: "0000000000001", Inputs: map[string]any{"x": "{{$artifacts}}"}}}}
	_, err = moderator.Next(t.Context(), s)
	require.Error(t, err)
}

// At $START no role has answered, so a section over all answers is omitted.
func TestNoEarlierAnswers(t *testing.T) {
	t.Parallel()
	s := earlier(protocol.Edge{})
	s.Last, s.History = nil, nil
	s.Workflow.Graph["$START"] = edges("_", protocol.Edge{Role: "plan", Prompt: "x{{#$steps}}{{plan.slug}}{{/$steps}}{{#$body}}{{.}}{{/$body}}"})
	d, err := moderator.Next(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "x", d.Prompt)
	s.Workflow.Graph["$START"] = edges("_", protocol.Edge{Role: "plan", Prompt: "{{$steps.plan.slug}}"})
	_, err = moderator.Next(t.Context(), s)
	prosetest.Error(t, err)
}

// A thread that continues after its end keeps its answers only for the edge "resume"; without that edge it
// starts as a new one.
func TestEarlierAnswersAfterTheEnd(t *testing.T) {
	t.Parallel()
	s := earlier(protocol.Edge{})
	s.Workflow.Graph["$START"] = edges("_", protocol.Edge{Role: "plan", Prompt: "{{^$steps.plan}}begin{{/$steps.plan}}"},
		"resume", protocol.Edge{Role: "plan", Prompt: "not {{$steps.plan.slug}}"})
	d, err := moderator.Resume(t.Context(), s, true, "")
	require.NoError(t, err)
	require.Contains(t, d.Prompt, "new")
	delete(s.Workflow.Graph["$START"].Edges, "resume")
	d, err = moderator.Resume(t.Context(), s, true, "")
	require.NoError(t, err)
	require.NotContains(t, d.Prompt, "new")
}

// The number of steps read depends on the distance to the named answers, not on the thread's length.
func TestEarlierAnswersAreReadLazily(t *testing.T) {
	t.Parallel()
	const long = 10_000
	for template, want := range map[string]int{
		"{{output}}": 0, "{{$steps.test.output}}": 1, "{{$steps.fix.x}}": 2, "{{$steps.fix.x}}{{$steps.plan.x}}": 3,
		"{{^$steps.use}}never{{/$steps.use}}": 1, "{{$steps.once.x}}": long,
	} {
		s := earlier(protocol.Edge{Role: "$END", Prompt: template})
		s.Workflow.Roles["once"] = protocol.Role{}
		read, outputs := 0, 0
		s.Depth, s.History = long, func(yield func(moderator.HistoryStep, error) bool) {
			for i := range long {
				role := []string{"test", "fix", "plan"}[i%3]
				if i == long-1 {
					role = "once"
				}
				visits := map[string]int{"test": long - i, "fix": long - i, "plan": long - i, "once": 1}
				output := func() (any, error) { outputs++; return obj("x", 1, "output", "o"), nil }
				if read++; !yield(moderator.HistoryStep{Role: role, Output: output, Visits: visits}, nil) {
					return
				}
			}
		}
		_, err := moderator.Next(t.Context(), s)
		require.NoError(t, err, template)
		require.Equal(t, want, read, template)
		require.LessOrEqual(t, outputs, 2, "only of those that are named")
	}
}

// Templates and answers are untrusted. A text rendered for a program never ends with a newline of a value,
// and otherwise equals the prompt's text.
func FuzzEarlierAnswers(f *testing.F) {
	for _, template := range []string{"{{$steps.plan.x}}", "a{{#$steps}}{{#plan}}{{x}}{{/plan}}{{/$steps}}", "{{$body}}\n", "{{$steps}}", "{{x}}{{$steps.test.x}}",
		"{{$steps.plan.x.length}}{{$steps.no}}", "{{^$steps.plan}}x{{/$steps.plan}}", "{{#$steps.plan.x}}{{$steps.test.x}}{{.}}{{/$steps.plan.x}}"} {
		f.Add(template, "text\r\n\n")
	}
	f.Fuzz(func(t *testing.T, template, value string) {
		defer fuzztest.Bounded(t)()
		if !utf8.ValidString(template) || strings.Contains(template+value, "\x00") {
			return
		}
		s := earlier(protocol.Edge{Role: "use", Prompt: "p", Location: template})
		s.Workflow.Roles["use"] = protocol.Role{Run: []string{"echo", template}}
		s.Last.Output = obj("$status", "failed", "x", value)
		s.History = past(step("test", s.Last.Output), step("plan", obj("x", value)))
		d, err := moderator.Next(t.Context(), s)
		if err != nil {
			return
		}
		if d.Command[1] != d.Location {
			t.Fatalf("a word is %q, a location %q", d.Command[1], d.Location)
		}
		s.Workflow.Graph["test"] = edges("failed", protocol.Edge{Role: "$END", Prompt: template})
		whole, err := moderator.Next(t.Context(), s)
		if err != nil || !strings.HasPrefix(whole.Prompt, d.Location) || strings.Trim(whole.Prompt[len(d.Location):], "\r\n") != "" {
			t.Fatalf("a word is %q, a prompt %q, %v", d.Location, whole.Prompt, err)
		}
	})
}

func BenchmarkEarlierAnswer(b *testing.B) {
	for _, length := range []int{10, 10_000} {
		b.Run(fmt.Sprint(length), func(b *testing.B) {
			s := earlier(protocol.Edge{Role: "$END", Prompt: "{{$steps.plan.slug}}"})
			steps := []moderator.HistoryStep{step("test", obj()), step("plan", obj("slug", "x"))}
			for range length {
				steps = append(steps, step("test", obj()))
			}
			s.History = past(steps...)
			for b.Loop() {
				if _, err := moderator.Next(b.Context(), s); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
