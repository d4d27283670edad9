package cas_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
)

const (
	someHash = protocol.Hash("00000000000AB")
	someTree = protocol.Tree("sha1:0123456789abcdef0123456789abcdef01234567")
)

// samples contains one complete payload of each kind.
func samples() []protocol.Payload {
	usage := &protocol.Usage{Turns: 3, InputTokens: 1 << 40, OutputTokens: 7, CostUSD: new(0.25), DurationMs: 9}
	return []protocol.Payload{
		protocol.Text("text\n"),
		protocol.NewSuspend("which one?"),
		protocol.Turn{
			Index: 1, Role: protocol.TurnAssistant, Content: "c", Reasoning: "r", Usage: usage, AtMs: 1780000000000,
			ToolCalls: []protocol.ToolCall{{ID: "1", Name: "read_file", Args: map[string]any{"path": "a", "lines": []any{int64(1), 2.5}}}, {ID: "2", Name: "x", Args: "raw"}},
		},
		protocol.Turn{Role: protocol.TurnUser, Content: "c", Refused: &protocol.Refused{Why: "w", Number: 1, Of: 2}},
		protocol.Detail{
			SessionID: "s", Model: "m", AgentVersion: "v", Capture: protocol.CaptureTurns, Turns: []protocol.Hash{someHash},
			Requests: []protocol.Hash{someHash}, Outcome: "end_turn", DurationMs: 5,
		},
		protocol.Workflow{
			Name: "w", Description: "d",
			Roles: map[string]protocol.Role{"planner": {
				Description: "d", Goal: "g", Capabilities: []string{"plan"}, Procedure: "p", Output: "o", Frontmatter: someHash, ExtractPrompt: "e",
			}},
			Conditions: map[string]protocol.Condition{"c": {Description: "d", Expression: "1 = 1"}},
			Graph: map[string]protocol.GraphNode{
				"$START":  {Edges: map[string]protocol.Edge{"_": {Role: "planner", Prompt: "{{{x}}}", Location: "/"}}},
				"planner": {Transitions: []protocol.Transition{{Edge: protocol.Edge{Role: "$END"}, Condition: "c"}}},
			},
			Limits: &protocol.Limits{MaxSteps: 5},
		},
		protocol.Start{Workflow: someHash, Prompt: "do", Cwd: "/w"},
		protocol.Step{
			Start: someHash, Prev: new(someHash), Index: 2, Visits: map[string]int{"planner": 1}, LimitBase: 1, Role: "planner",
			Output: someHash, Detail: someHash, Agent: "uwf-mock", EdgePrompt: "e", Cwd: "/w", StartedAtMs: 1, CompletedAtMs: 2,
			SessionID: "s", Prompt: new(someHash), ExtractedBy: protocol.ByFrontmatter, Usage: usage,
		},
		protocol.Step{Start: someHash, Output: someHash, Detail: someHash, Visits: map[string]int{}, ExtractedBy: protocol.ByValue},
		protocol.Start{
			Workflow: someHash, Prompt: "do", Cwd: "/w", Inputs: map[string]any{"issue": int64(7)},
			Child: &protocol.Child{Of: someHash, Role: "panel", Key: "docs", Attempt: 1}, Workspace: &protocol.Workspace{Mode: "worktree", Base: someTree, Tree: someTree},
		},
		protocol.Step{
			Start: someHash, Output: someHash, Detail: someHash, Visits: map[string]int{}, ExtractedBy: protocol.ByValue, Root: "/w",
			Files:    &protocol.Files{Tree: someTree, Before: someTree, Left: []string{"big"}, Note: "n"},
			Children: []protocol.ChildEnded{{Key: "docs", Head: someHash, Status: protocol.StatusCompleted, Usage: usage}},
			Tries:    []protocol.Try{{Agent: "uwf-mock", Error: "e", Detail: new(someHash), Usage: usage, AtMs: 1}},
			Memo:     &protocol.Memo{Key: "k", Of: new(someHash)},
		},
		protocol.Detail{SessionID: "s", Capture: protocol.CaptureFinal, Turns: []protocol.Hash{}, By: "Ada"},
		protocol.Workflow{
			Name: "w", Description: "d", Graph: map[string]protocol.GraphNode{},
			Inputs: map[string]protocol.Input{"issue": {Schema: someHash, Description: "d"}, "quick": {Schema: someHash, Default: false}},
			Roles: map[string]protocol.Role{
				"tests":   {Capabilities: []string{}, Frontmatter: someHash, Run: []string{"go", "test"}, Parse: protocol.ParseJSON, TimeoutMs: 5},
				"approve": {Capabilities: []string{}, Frontmatter: someHash, Person: true, Tools: []string{"read_file"}, Memo: true},
				"review":  {Capabilities: []string{}, Frontmatter: someHash, Workflow: someHash, Inputs: map[string]any{"branch": "b"}},
				"panel": {Capabilities: []string{}, Frontmatter: someHash, Join: "1", Parallel: 2, Workspace: "worktree", Merge: true, All: map[string]protocol.ChildRole{
					"a": {Role: "tests", Prompt: "p", Inputs: map[string]any{"n": int64(1)}}, "b": {Workflow: someHash},
				}},
				"each": {Capabilities: []string{}, Frontmatter: someHash, Each: &protocol.EachRole{Of: "meta.x", Max: 3, ChildRole: protocol.ChildRole{Workflow: someHash}}},
			},
			Limits: &protocol.Limits{MaxSteps: 5, MaxCostUSD: 1.5, MaxTokens: 1000, MaxTimeMs: 60000},
		},
	}
}

func TestReadGivesBackWhatWasAdded(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, _ := newBatch(t)
	for _, p := range samples() {
		h, err := b.Add(ctx, p)
		require.NoError(t, err)
		got, err := readKind(ctx, b, p.Kind(), h)
		require.NoError(t, err)
		require.Equal(t, p, got)
		n, err := b.Get(ctx, h)
		require.NoError(t, err)
		require.Equal(t, b.Kinds().Schema(protocol.TypeOf(p)).Hash, n.Type)
	}
}

// readKind is Read with the kind as a value.
func readKind(ctx context.Context, r cas.Reader, k protocol.Kind, h cas.Hash) (protocol.Payload, error) {
	switch k {
	case protocol.KindText:
		return cas.Read[protocol.Text](ctx, r, h)
	case protocol.KindSuspend:
		return cas.Read[protocol.Suspend](ctx, r, h)
	case protocol.KindTurn:
		return cas.Read[protocol.Turn](ctx, r, h)
	case protocol.KindDetail:
		return cas.Read[protocol.Detail](ctx, r, h)
	case protocol.KindWorkflow:
		return cas.Read[protocol.Workflow](ctx, r, h)
	case protocol.KindStart:
		return cas.Read[protocol.Start](ctx, r, h)
	}
	return cas.Read[protocol.Step](ctx, r, h)
}

func TestReadOfAnotherKind(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b, _ := newBatch(t)
	h, err := b.Add(ctx, protocol.Text("x"))
	require.NoError(t, err)

	_, err = cas.Read[protocol.Step](ctx, b, h)
	var wrong *cas.TypeError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, cas.TypeError{Hash: h, Got: b.Kinds().Hash(protocol.KindText), Want: protocol.KindStep}, *wrong)
	_, err = cas.Read[protocol.Step](ctx, b, someHash)
	require.ErrorIs(t, err, cas.ErrNotFound)
}

// Other programs also write nodes: an invalid node isn't read as its kind.
func TestReadOfABadNode(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	_, s := newBatch(t)
	for name, value := range map[string]any{
		"wrong type of a field": map[string]any{"workflow": 1, "prompt": "p", "cwd": "/"},
		"not a hash":            map[string]any{"workflow": "w", "prompt": "p", "cwd": "/"},
		"wrong case":            map[string]any{"Workflow": someHash, "prompt": "p", "cwd": "/"},
		"not an object":         []any{1},
	} {
		payload, err := cas.Encode(value)
		require.NoError(t, err)
		typ := s.Kinds().Hash(protocol.KindStart)
		h := s.Algorithm().Sum(typ, payload)
		require.NoError(t, s.Put(ctx, cas.Node{Hash: h, Type: typ, Payload: payload}))
		_, err = cas.Read[protocol.Start](ctx, s, h)
		var corrupt *cas.CorruptError
		require.ErrorAs(t, err, &corrupt, name)
		require.Equal(t, h, corrupt.Hash, name)
	}
}

// A newer program can add fields; an older one reads those that it knows.
func TestNodeDecodeIgnoresNewFields(t *testing.T) {
	t.Parallel()
	payload, err := cas.Encode(map[string]any{"workflow": someHash, "prompt": "p", "cwd": "/", "brandNew": []any{1}})
	require.NoError(t, err)
	var start protocol.Start
	require.NoError(t, cas.Node{Payload: payload}.Decode(&start))
	require.Equal(t, protocol.Start{Workflow: someHash, Prompt: "p", Cwd: "/"}, start)
}

func TestNodeDecodeRejectsNonCanonical(t *testing.T) {
	t.Parallel()
	var text protocol.Text
	require.ErrorContains(t, cas.Node{Hash: someHash, Payload: []byte{0x78, 1, 'x'}}.Decode(&text), string(someHash))
	_, err := cas.Node{Hash: someHash, Payload: []byte{0x78, 1, 'x'}}.Value()
	require.ErrorContains(t, err, string(someHash))
}

// A node file is read back unchanged, and every kind of damage is reported.
func TestUnmarshalFile(t *testing.T) {
	t.Parallel()
	n := textNode(t, cas.XXH3, "some text that is long enough to be cut")
	for _, timestamp := range []int64{0, 23, 24, 255, 256, 65535, 65536, 1<<32 - 1, 1 << 32, 1<<53 - 1} {
		n.Timestamp = timestamp
		got, err := cas.XXH3.UnmarshalFile(n.Hash, cas.MarshalFile(n))
		require.NoError(t, err)
		require.Equal(t, n, got)
	}
	whole := cas.MarshalFile(n)
	for i := range whole {
		_, err := cas.XXH3.UnmarshalFile(n.Hash, whole[:i])
		var corrupt *cas.CorruptError
		require.ErrorAs(t, err, &corrupt, "cut at %d", i)

		flipped := append([]byte(nil), whole...)
		flipped[i] ^= 0x10
		got, err := cas.XXH3.UnmarshalFile(n.Hash, flipped)
		if err == nil {
			require.True(t, got.Equal(n), "no hash covers the timestamp, and nothing else: byte %d", i)
		}
	}
	_, err := cas.XXH3.UnmarshalFile(n.Hash, append(whole, 0))
	require.Error(t, err)
	_, err = cas.XXH64.UnmarshalFile(n.Hash, whole)
	prosetest.Error(t, err)
}
