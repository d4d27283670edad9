package react

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/roles"
)

func adapted(b *bench) agentkit.Options {
	l := b.Loop
	l.Record = nil
	return roles.Agent("react", roles.Binding{Maker: Roles(l)})
}

func TestAdapterWorksUntilItResolves(t *testing.T) {
	t.Parallel()
	m := script(t,
		callTool("a", "echo", `{"text":"1"}`),
		callTool("b", "resolve", `{"$status":"perfect"}`),
		callTool("c", "resolve", `{"$status":"done","summary":"x"}`))
	b := newBench(t, m)
	got := agentkittest.Run(t, adapted(b), agentkittest.Scenario{Task: "Do it."}).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "x"}, got.Output)
	require.Equal(t, []string{"echo 1"}, b.ran)
	require.Equal(t, "ok", got.Detail.Outcome)
	require.Equal(t, 3, got.Step.Usage.Turns)
	require.Len(t, got.Turns, 6)
	prosetest.Text(t, got.Turns[3].Content)
	prosetest.Text(t, m.requests()[0].Messages[0].Content)
	require.Contains(t, m.requests()[0].Messages[1].Content, "Do it.")
}

func TestAdapterSuspends(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, callTool("a", "resolve", `{"$status":"$SUSPEND","reason":"Which branch?"}`)))
	got := agentkittest.Run(t, adapted(b), agentkittest.Scenario{}).Succeeded()
	require.Equal(t, "Which branch?", got.Suspended)
}

func TestAdapterOutOfRounds(t *testing.T) {
	t.Parallel()
	b := newBench(t, script(t, say("I think about it.")))
	b.Turns = 3
	got := agentkittest.Run(t, adapted(b), agentkittest.Scenario{}).Failed()
	prosetest.Text(t, got.ErrorText())
	require.Equal(t, 3, got.Result.Usage.Turns, "what it cost is told")
}
