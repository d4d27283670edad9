package react

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/llm"
)

var plan = map[string]any{
	"$schema": "http://json-schema.org/draft-07/schema#", "type": "object",
	"properties": map[string]any{"plan": map[string]any{"type": "string"}, "ref": map[string]any{"type": "string", "format": "ocas_ref"}},
	"required":   []any{"plan"},
}

func resolving(t *testing.T, m *model) *bench {
	t.Helper()
	b := newBench(t, m)
	b.Resolve = &Resolve{Schema: plan, Check: func(_ context.Context, v any) (string, error) {
		if v.(map[string]any)["plan"] == nil {
			return "plan is missing", nil
		}
		return "", nil
	}}
	return b
}

func TestResolveEndsTheRun(t *testing.T) {
	t.Parallel()
	m := script(t,
		callTool("a", "echo", `{"text":"1"}`),
		say("The plan is to swap."),
		reply("tool_calls", "", "b", "resolve", `{"nothing":1}`),
		reply("tool_calls", "", "c", "functions.Resolve", `{"plan":"swap"}`, "d", "write", `{"text":"after"}`))
	b := resolving(t, m)
	_, answer := b.mustRun()
	require.Equal(t, Done, answer.Outcome)
	require.Equal(t, map[string]any{"plan": "swap"}, answer.Value)
	require.Equal(t, []string{"echo 1", "write after"}, b.ran, "the other calls of the reply are answered too")
	require.Equal(t, `{"ok":true}`, b.turns[len(b.turns)-2].Content)

	asked := m.requests()
	declared := asked[0].Tools[len(asked[0].Tools)-1].(map[string]any)["function"].(map[string]any)
	require.Equal(t, map[string]any{
		"name":        "resolve",
		"description": "Submit the final structured output for this role. Call this when the task is complete.",
		"parameters": map[string]any{"type": "object", "required": []any{"plan"}, "properties": map[string]any{
			"plan": map[string]any{"type": "string"}, "ref": map[string]any{"type": "string"},
		}},
	}, declared)
	prosetest.Text(t, asked[2].last())
	prosetest.Text(t, asked[3].last())
}

func TestLastRoundHasOnlyResolve(t *testing.T) {
	t.Parallel()
	m := script(t, callTool("a", "echo", `{"text":"1"}`), say("Still at it."), callTool("b", "write", `{}`))
	b := resolving(t, m)
	b.Turns = 3
	_, answer := b.mustRun()
	require.Equal(t, MaxTurns, answer.Outcome)
	require.Nil(t, answer.Value)
	require.Equal(t, []string{"echo 1"}, b.ran)
	last := m.requests()[2]
	prosetest.Text(t, last.last())
	require.Equal(t, map[string]any{"type": "function", "function": map[string]any{"name": "resolve"}}, last.Choice)
	prosetest.Text(t, b.turns[len(b.turns)-1].Content)

	b = resolving(t, script(t, callTool("a", "echo", `{}`), callTool("b", "resolve", `{"plan":"x"}`)))
	b.Turns = 2
	_, answer = b.mustRun()
	require.Equal(t, Done, answer.Outcome)
}

// Arguments of a tool are an object, so other values are wrapped in one.
func TestValueIsNotObject(t *testing.T) {
	t.Parallel()
	for args, want := range map[string]any{
		`{"value":["a"]}`:                        []any{"a"},
		`{"$status":"$SUSPEND","reason":"who?"}`: map[string]any{"$status": "$SUSPEND", "reason": "who?"},
	} {
		m := script(t, callTool("a", "resolve", args))
		b := newBench(t, m)
		b.Resolve = &Resolve{Schema: map[string]any{"type": "array", "items": map[string]any{"type": "string"}}}
		_, answer := b.mustRun()
		require.Equal(t, want, answer.Value)
	}
}

func TestNameOfResolveIsTaken(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, say(final)))
	b.Resolve = &Resolve{Schema: plan}
	b.Tools = registry(t, "resolve")
	_, err := b.Run(t.Context(), InMemory("s", llm.User("u")))
	prosetest.Error(t, err)
}
