package cas_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/cas/castest"
	"github.com/united-workforce/uwf/protocol"
)

// putAs puts a value and its schema without validation.
func putAs(t *testing.T, s cas.Store, schema, value any) cas.Node {
	t.Helper()
	ctx := context.Background()
	put := func(typ cas.Hash, v any) cas.Node {
		payload, err := cas.Encode(v)
		require.NoError(t, err)
		n := cas.Node{Hash: s.Algorithm().Sum(typ, payload), Type: typ, Payload: payload}
		require.NoError(t, s.Put(ctx, n))
		return n
	}
	require.NoError(t, s.Put(ctx, s.Kinds().Meta()))
	return put(put(s.Kinds().MetaHash(), schema).Hash, value)
}

// fieldsOf returns a schema with unrestricted fields.
func fieldsOf(title string, fields ...string) any {
	properties := map[string]any{}
	for _, f := range fields {
		properties[f] = map[string]any{}
	}
	return map[string]any{"title": title, "type": "object", "properties": properties}
}

// Nodes of all the original's versions are converted when read.
func TestOriginalForms(t *testing.T) {
	t.Parallel()
	role := map[string]any{"description": "d", "goal": "g", "capabilities": []any{"c"}, "procedure": "p", "output": "o", "frontmatter": string(someHash)}
	older := map[string]any{"description": "d", "systemPrompt": "who", "prepare": "one", "execute": "two", "report": "r", "meta": string(someHash)}
	edge := map[string]any{"_": map[string]any{"role": "a", "prompt": "go", "location": nil}}
	list := []any{map[string]any{"role": "$END", "condition": nil}}
	tests := map[string]struct {
		schema, value any
		want          protocol.Payload
	}{
		"workflow": {
			fieldsOf("Workflow", "name", "roles", "graph"),
			map[string]any{"version": 1, "name": "w", "description": "d", "roles": map[string]any{"a": role}, "graph": map[string]any{"$START": edge}},
			protocol.Workflow{Name: "w", Description: "d",
				Roles: map[string]protocol.Role{"a": {Description: "d", Goal: "g", Capabilities: []string{"c"}, Procedure: "p", Output: "o", Frontmatter: someHash}},
				Graph: map[string]protocol.GraphNode{"$START": {Edges: map[string]protocol.Edge{"_": {Role: "a", Prompt: "go"}}}}},
		},
		"workflow with transitions and older roles": {
			fieldsOf("Workflow", "name", "roles"),
			map[string]any{"name": "w", "description": "", "roles": map[string]any{"a": older}, "graph": map[string]any{"a": list}},
			protocol.Workflow{Name: "w",
				Roles: map[string]protocol.Role{"a": {Description: "d", Goal: "who", Capabilities: []string{}, Procedure: "one\n\ntwo", Output: "r", Frontmatter: someHash}},
				Graph: map[string]protocol.GraphNode{"a": {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "$END"}}}}}},
		},
		"start without a directory": {
			fieldsOf("StartNode", "workflow", "prompt"), map[string]any{"workflow": string(someHash), "prompt": "p"},
			protocol.Start{Workflow: someHash, Prompt: "p"},
		},
		"text":    {map[string]any{"type": "string"}, "hello", protocol.Text("hello")},
		"suspend": {fieldsOf("SuspendOutput", "$status", "reason"), map[string]any{"$status": "$SUSPEND", "reason": "why"}, protocol.NewSuspend("why")},
		"hermes' detail": {
			fieldsOf("hermes-detail", "sessionId", "turns"),
			map[string]any{"sessionId": "s", "model": "m", "duration": 12, "turnCount": 1, "turns": []any{string(someHash)}},
			protocol.Detail{SessionID: "s", Model: "m", Capture: protocol.CaptureTurns, Turns: []protocol.Hash{someHash}, DurationMs: 12},
		},
		"the mock agent's detail": {
			fieldsOf("mock-detail", "sessionId", "role", "stepIndex"), map[string]any{"sessionId": "mock-0", "role": "a", "stepIndex": 0},
			protocol.Detail{SessionID: "mock-0", Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}},
		},
		"Claude Code's turn": {
			fieldsOf("claude-code-turn", "index", "role", "content", "toolCalls"),
			map[string]any{"index": 3, "role": "tool_result", "content": "c", "toolCalls": []any{map[string]any{"name": "ls", "input": map[string]any{"p": "."}}}},
			protocol.Turn{Index: 3, Role: protocol.TurnTool, Content: "c", ToolCalls: []protocol.ToolCall{{Name: "ls", Args: map[string]any{"p": "."}}}},
		},
		"a turn with nulls": {
			fieldsOf("builtin-turn", "index", "role", "content"), map[string]any{"index": 0, "role": "assistant", "content": "c", "toolCalls": nil, "reasoning": nil},
			protocol.Turn{Role: protocol.TurnAssistant, Content: "c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := castest.NewStore(t, cas.XXH64)
			n := putAs(t, s, test.schema, test.value)
			require.Equal(t, test.want, readAs(t, s, n, test.want.Kind()))

			other := castest.NewStore(t, cas.XXH3)
			_, err := cas.As[protocol.Text](context.Background(), other, putAs(t, other, test.schema, test.value))
			var kind *cas.TypeError
			require.ErrorAs(t, err, &kind, "only a store with the original's hashes can hold the original's nodes")
		})
	}
}

func readAs(t *testing.T, s cas.Store, n cas.Node, kind protocol.Kind) protocol.Payload {
	t.Helper()
	ctx := context.Background()
	var p protocol.Payload
	var err error
	switch kind {
	case protocol.KindWorkflow:
		p, err = cas.As[protocol.Workflow](ctx, s, n)
	case protocol.KindStart:
		p, err = cas.As[protocol.Start](ctx, s, n)
	case protocol.KindDetail:
		p, err = cas.As[protocol.Detail](ctx, s, n)
	case protocol.KindTurn:
		p, err = cas.As[protocol.Turn](ctx, s, n)
	case protocol.KindText:
		p, err = cas.As[protocol.Text](ctx, s, n)
	case protocol.KindSuspend:
		p, err = cas.As[protocol.Suspend](ctx, s, n)
	}
	require.NoError(t, err)
	return p
}

// A title alone doesn't determine a kind, because users choose the titles of outputs.
func TestATitleIsNotEnough(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	n := putAs(t, s, fieldsOf("Workflow", "status"), map[string]any{"status": "done"})
	_, err := cas.As[protocol.Workflow](t.Context(), s, n)
	var kind *cas.TypeError
	require.ErrorAs(t, err, &kind)
	_, isStep, err := cas.OriginalStep(t.Context(), s, n)
	require.NoError(t, err)
	require.False(t, isStep)
}

func TestOriginalStep(t *testing.T) {
	t.Parallel()
	s := castest.NewStore(t, cas.XXH64)
	fields := []string{"start", "prev", "role", "output", "detail", "agent"}
	value := map[string]any{"start": string(someHash), "prev": nil, "role": "a", "output": string(someHash), "detail": string(someHash), "agent": "uwf-x"}
	want := protocol.Step{Start: someHash, Role: "a", Output: someHash, Detail: someHash, Agent: "uwf-x", Visits: map[string]int{}, ExtractedBy: protocol.ByFrontmatter}

	got, ok, err := cas.OriginalStep(t.Context(), s, putAs(t, s, fieldsOf("StepNode", fields...), value))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got, "the oldest steps have no times, no prompt and no directory")

	value["usage"] = map[string]any{"turns": 2, "inputTokens": 10, "outputTokens": 3, "duration": 1.5}
	value["previousAttempts"] = []any{string(someHash)}
	want.Usage = &protocol.Usage{Turns: 2, InputTokens: 10, OutputTokens: 3, DurationMs: 1500}
	got, ok, err = cas.OriginalStep(t.Context(), s, putAs(t, s, fieldsOf("StepNode", append(fields, "usage")...), value))
	require.NoError(t, err)
	require.True(t, ok)
	require.Equal(t, want, got)

	value["start"] = "nonsense"
	_, _, err = cas.OriginalStep(t.Context(), s, putAs(t, s, fieldsOf("StepNode", fields...), value))
	var corrupt *cas.CorruptError
	require.ErrorAs(t, err, &corrupt)
}
