package agentkit_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/cas"
	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/internal/nodestest"
	"github.com/united-workforce/uwf/utilagent/internal/runenv"
)

// An agent's reports are announced in order, the prompt first. A failed step keeps all of them in its detail.
// None contains a secret.
func TestFailedStepReportsError(t *testing.T) {
	t.Parallel()
	const secret = "tell-nobody-123"
	th := agentkittest.New(t, agentkittest.Scenario{Task: "The key is " + secret + "."})
	got := th.Run(agentkit.Options{Name: "told", Run: func(ctx context.Context, req *agentkit.Request) (agentkit.Result, error) {
		req.Hide(secret)
		err := req.Turn(ctx, protocol.Turn{Role: protocol.TurnAssistant, Content: "I begin with " + secret})
		_, textErr := runenv.Of(ctx).Text(ctx, "asked with "+secret)
		return agentkit.Result{SessionID: "s"}, errors.Join(err, textErr, errors.New("it broke"))
	}}).Failed("it broke")

	var kinds []string
	for line := range strings.Lines(got.Stdout) {
		var l protocol.TurnLine
		if json.Unmarshal([]byte(line), &l) == nil && l.UWF != "" {
			kinds = append(kinds, l.UWF)
		}
	}
	require.Equal(t, []string{"request", "turn", "request"}, kinds)
	require.Len(t, got.Turns, 1)
	require.Equal(t, "I begin with [hidden key]", got.Turns[0].Content)
	require.Equal(t, "failed", got.Detail.Outcome)
	var texts []string
	for _, h := range got.Detail.Requests {
		text, err := cas.Read[protocol.Text](t.Context(), nodestest.Of(t, th), h)
		require.NoError(t, err)
		texts = append(texts, string(text))
	}
	require.Len(t, texts, 2)
	require.Contains(t, texts[0], "The key is [hidden key].")
	require.Equal(t, "asked with [hidden key]", texts[1])
}

// An agent that fails before it has reported anything still leaves its prompt.
func TestAStepThatFailsAtOnceLeavesItsPrompt(t *testing.T) {
	t.Parallel()
	th := agentkittest.New(t, agentkittest.Scenario{Task: "Do it."})
	got := th.Run(agentkit.Options{Name: "told", Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
		return agentkit.Result{}, errors.New("it broke")
	}}).Failed("it broke")
	require.Empty(t, got.Turns)
	require.Len(t, got.Detail.Requests, 1)
	text, err := cas.Read[protocol.Text](t.Context(), nodestest.Of(t, th), got.Detail.Requests[0])
	require.NoError(t, err)
	require.Contains(t, string(text), "Do it.")
}
