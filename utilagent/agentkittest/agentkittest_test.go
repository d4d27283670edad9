package agentkittest_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

func Example() {
	TestHello := func(t *testing.T) {
		got := agentkittest.Run(t, greeter(), agentkittest.Scenario{
			Task:    "Greet.",
			History: []agentkittest.History{{Content: "Good morning."}},
		}).Succeeded()
		require.Equal(t, map[string]any{"$status": "done"}, got.Output)
		require.Equal(t, "hello 2", got.Content)
	}
	_ = TestHello
}

func greeter() agentkit.Options {
	return agentkit.Options{Name: "greeter", Structured: true, Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		err := req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "hello " + string(rune('0'+req.Number))})
		return agentkit.Result{Value: map[string]any{"$status": "done"}, SessionID: "s"}, err
	}}
}

// A thread continues from step to step, and its forks share its steps.
func TestThreadContinues(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, agentkittest.Scenario{History: []agentkittest.History{{Output: map[string]any{"$status": "failed"}}}})
	require.Equal(t, "hello 2", th.Run(greeter()).Succeeded().Content)
	fork := th.Fork()
	require.NotEqual(t, th.ID, fork.ID)
	require.Equal(t, "hello 3", th.Run(greeter()).Succeeded().Content)
	require.Equal(t, "hello 3", fork.Run(greeter()).Succeeded().Content)
	th.Suspend("why?")
	got := th.Run(greeter()).Succeeded()
	require.Equal(t, 4, got.Step.Index)
	require.Contains(t, got.Prompt, "why?")
}

func TestFailedStepLeavesTheHead(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, agentkittest.Scenario{})
	head := th.Head
	th.Run(agentkit.Options{Name: "none", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
		return agentkit.Result{Output: "nothing", SessionID: "s"}, nil
	}}).Failed("frontmatter")
	require.Equal(t, head, th.Head)
}
