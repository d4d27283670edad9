package builtin

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
	"github.com/united-workforce/uwf/utilagent/tools"
)

func TestReactEndsWithResolve(t *testing.T) {
	t.Parallel()
	e := serve(t,
		call("list_dir", `{}`),
		say("All done."),
		call("resolve", `{"$status":"done","summary":"it works"}`))
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(ReactOptions()).Succeeded()
	require.Equal(t, map[string]any{"$status": "done", "summary": "it works"}, got.Output)
	require.Equal(t, protocol.ByValue, got.Step.ExtractedBy)
	require.Equal(t, "uwf-react", got.Step.Agent)
	system := e.messages(t, 0)[0]
	require.NotContains(t, system, "frontmatter")
	prosetest.Text(t, system)
	prosetest.Text(t, strings.Join(e.messages(t, 2), "\n"))

	th.Run(ReactOptions()).Succeeded()
	require.Equal(t, e.messages(t, 2), e.messages(t, 3)[:len(e.messages(t, 2))], "the next turn goes on in the conversation")
}

func TestReactOutOfRoundsSuspends(t *testing.T) {
	t.Parallel()
	e := serve(t, say("I think."))
	got := agentkittest.Run(t, ReactOptions(), e.scenario("builtin: { maxTurns: 3 }")).Succeeded()
	prosetest.Text(t, got.Suspended, got.Suspended)
	require.Equal(t, 3, e.count())
}

func TestLLMAsksOnceWithoutTools(t *testing.T) {
	t.Parallel()
	e := serve(t, say("---\n$status: perfect\n---\n"), say(done))
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(LLMOptions()).Succeeded()
	require.Equal(t, "uwf-llm", got.Step.Agent)
	require.Equal(t, 2, e.count(), "one question, one correction")
	require.NotContains(t, e.asked[0], `"tools"`)
	prosetest.Text(t, e.messages(t, 0)[0])
	require.Len(t, e.messages(t, 1), 4, "the correction is part of the conversation")
	prosetest.Text(t, got.Content, "the text beside the data is kept")

	th.Run(LLMOptions()).Succeeded()
	require.Len(t, e.messages(t, 2), 6, "the role goes on in its conversation")
}

// A part of an answer is none, even if it begins with valid data.
func TestNoPartOfAnAnswerIsStored(t *testing.T) {
	t.Parallel()
	cut := reply{text: strings.TrimSuffix(done, " of it.\n"), cut: true}
	for name, c := range map[string]struct {
		options agentkit.Options
		replies []reply
	}{
		"the only reply":      {LLMOptions(), []reply{cut}},
		"a correction":        {LLMOptions(), []reply{say("---\n$status: perfect\n---\n"), cut}},
		"every reply":         {Options(), []reply{cut}},
		"every one corrected": {Options(), []reply{say("---\n$status: perfect\n---\n"), cut}},
	} {
		e := serve(t, c.replies...)
		got := agentkittest.Run(t, c.options, e.scenario(""))
		require.Equal(t, 1, got.ExitCode, name)
		require.Contains(t, got.Stderr, "cut off", name)
		require.NotNil(t, got.Result.Usage, name)
	}
}

// A retry continues the conversation that ends with a part of an answer.
func TestNoPartOfAnAnswerIsStoredByARetry(t *testing.T) {
	t.Parallel()
	cut := reply{text: strings.TrimSuffix(done, " of it.\n"), cut: true}
	for name, c := range map[string]struct {
		options agentkit.Options
		replies []reply
	}{
		"the only reply":      {LLMOptions(), []reply{cut}},
		"a correction":        {LLMOptions(), []reply{say("---\n$status: perfect\n---\n"), cut}},
		"every reply":         {Options(), []reply{cut}},
		"every one corrected": {Options(), []reply{say("---\n$status: perfect\n---\n"), cut}},
	} {
		e := serve(t, c.replies...)
		th := agentkittest.New(t, e.scenario(""))
		require.Equal(t, 1, th.Run(c.options).ExitCode, name)
		asked := e.count()
		for len(e.replies) < asked {
			e.replies = append(e.replies, cut)
		}
		e.replies = append(e.replies, say(done))
		th.Run(c.options).Succeeded()
		require.Equal(t, asked+1, e.count(), name)
	}
}

// Every reply of the scripted endpoint costs 110 tokens.
func TestBudgetsSuspend(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ config string }{
		"tokens": {"builtin: { maxTokens: 330 }"},
		"cost":   {"builtin: { maxCostUsd: 0.33 }"},
		"time":   {"builtin: { maxTime: 1ns }"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, call("list_dir", `{}`))
			s := e.scenario(c.config)
			s.Config = strings.Replace(s.Config, "name: main-model }", "name: main-model, price: { input: 1000, output: 1000 } }", 1)
			th := agentkittest.New(t, s)
			got := th.Run(Options()).Succeeded()
			prosetest.Text(t, got.Suspended)
			require.LessOrEqual(t, e.count(), 3)
			if name == "time" {
				return
			}
			require.InDelta(t, 0.33, *got.Step.Usage.CostUSD, 1e-9)
			th.Run(Options())
			require.Greater(t, len(e.messages(t, 3)), len(e.messages(t, 2)), "resuming goes on, with as much again")
		})
	}
}

// The detail of a run shows what happened.
func TestDetailReportsHistory(t *testing.T) {
	t.Parallel()
	e := serve(t, refuse(503, "0.01"), call("read_file", `{"path":"nothing"}`), say("I am done."), say(done))
	s := e.scenario("builtin: { allowCommands: [go], maxTokens: 5000 }")
	s.Task = "Use the key " + key + "."
	th := agentkittest.New(t, s)
	got := th.Run(Options()).Succeeded()
	texts := requests(t, th, got)
	require.Len(t, texts, 5)
	for _, want := range []string{
		"agent: uwf-builtin\n", "model: main-model (main in config.yaml, provider local)\n",
		"endpoint: " + e.URL + "/v1/chat/completions, streamed\n", "limits: 30 replies, 5000 tokens\n",
		"tools: read_file, list_dir, ", "commands: only go; confined by: ", "workspace: " + th.Cwd,
		"--- system ---\n## Deliverable Format", "--- user ---\n## Task\n\nUse the key [hidden key].",
	} {
		require.Contains(t, texts[0], want)
	}
	prosetest.Text(t, texts[1])
	require.Contains(t, texts[3], "question 3: 6 messages")
	prosetest.Text(t, texts[4])
	require.NotContains(t, strings.Join(texts, ""), key)
	require.Equal(t, []string{"assistant", "tool", "assistant", "user", "assistant"}, roles(got.Turns))
}

func roles(turns []protocol.Turn) []string {
	var list []string
	for _, turn := range turns {
		list = append(list, string(turn.Role))
	}
	return list
}

// requests returns the texts of a detail.
func requests(t *testing.T, th *agentkittest.Thread, got *agentkittest.Outcome) []string {
	t.Helper()
	var list []string
	for _, h := range got.Detail.Requests {
		list = append(list, text(t, th, h))
	}
	return list
}

// A third-party agent: ours with one more tool, under another name.
func TestToolOfAThirdParty(t *testing.T) {
	t.Parallel()
	e := serve(t, call("weather", `{"city":"Lisbon"}`), say(done))
	type args struct{ City string }
	o := Options(tools.New(tools.Spec{Name: "weather", Description: "Tell the weather.", Parameters: map[string]any{
		"type": "object", "properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"},
	}}, func(_ context.Context, a args) (string, error) { return "sunny in " + a.City, nil }))
	o.Name = "weatherman"
	got := agentkittest.Run(t, o, e.scenario("")).Succeeded()
	require.Equal(t, "uwf-weatherman", got.Step.Agent)
	require.Equal(t, "sunny in Lisbon", got.Turns[1].Content)
	require.Contains(t, e.messages(t, 0)[0], ", weather.")
}

// An endpoint that does not report usage has none, not zeros.
func TestUnreportedUsage(t *testing.T) {
	t.Parallel()
	e := serve(t, reply{calls: []string{"list_dir", "{}"}, free: true}, reply{text: done, free: true})
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(Options()).Succeeded()
	require.Nil(t, got.Step.Usage)
	for _, turn := range got.Turns {
		require.Nil(t, turn.Usage)
	}
	asked := strings.Join(requests(t, th, got), "\n")
	require.Contains(t, asked, "tokens unknown")
	require.NotContains(t, asked, " 0 tokens")

	e = serve(t, reply{calls: []string{"list_dir", "{}"}, free: true}, say(done))
	th = agentkittest.New(t, e.scenario(""))
	got = th.Run(Options()).Succeeded()
	require.Nil(t, got.Step.Usage, "a sum that is too low would not show it")
	prosetest.Text(t, strings.Join(requests(t, th, got), "\n"))
}

// The error for an unenforceable cost budget explains what is missing.
func TestUnknownCost(t *testing.T) {
	t.Parallel()
	e := serve(t, say(done))
	prosetest.Text(t, agentkittest.Run(t, Options(), e.scenario("builtin: { maxCostUsd: 1 }")).Failed().ErrorText())

	e = serve(t, reply{text: done, free: true})
	priced := e.scenario("builtin: { maxCostUsd: 1 }")
	priced.Config = strings.Replace(priced.Config, "main: {", "main: { price: { input: 1, output: 2 },", 1)
	require.Contains(t, priced.Config, "price")
	prosetest.Text(t, agentkittest.Run(t, Options(), priced).Failed().ErrorText())
}

// A failed step keeps its turns, with all requests.
func TestFailedStepLeavesItsDetail(t *testing.T) {
	t.Parallel()
	e := serve(t, call("list_dir", `{}`), refuse(401, ""))
	th := agentkittest.New(t, e.scenario(""))
	got := th.Run(Options()).Failed("LOCAL_KEY")
	require.Len(t, got.Turns, 2)
	require.Equal(t, "failed", got.Detail.Outcome)
	list := requests(t, th, got)
	require.Len(t, list, 5)
	require.Contains(t, list[0], "Do the work.", "the prompt")
	require.Contains(t, list[1], "agent: uwf-builtin", "how it was set up")
	require.Contains(t, list[2], "question 1: 2 messages")
	prosetest.Text(t, list[3])
	require.Contains(t, list[4], "end: it failed: model \"main-model\"")
	require.NotContains(t, strings.Join(list, ""), key)
}

// A role without output data is answered by the first text without a tool call, because another request would
// cost money.
func TestARoleWithoutSchemaIsAnsweredByAText(t *testing.T) {
	t.Parallel()
	const report = "# Report\n\nFixed.\n\n---\nnote: a line of mine\n---\n\nThe end."
	for name, options := range map[string]agentkit.Options{"builtin": Options(), "llm": LLMOptions()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := serve(t, say(report))
			s := e.scenario("")
			s.Schema = protocol.AnswerSchema()
			got := agentkittest.Run(t, options, s).Succeeded()
			require.Equal(t, map[string]any{protocol.AnswerField: report}, got.Output)
			require.Equal(t, 1, e.count())
			require.NotContains(t, e.messages(t, 0)[0], "`---`")
		})
	}
}
