package acp

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

// story plays updates and permission requests, and returns the resulting events.
func story(t *testing.T, lines ...string) (*emitter, told) {
	t.Helper()
	var r told
	tell := newEmitter(func(e cliagent.Event) { r.events = append(r.events, e) })
	for _, line := range lines {
		if asked, ok := strings.CutPrefix(line, "ask "); ok {
			var p permissionParams
			require.NoError(t, json.Unmarshal([]byte(asked), &p))
			tell.permissionAsked(p.ToolCall.toolCall, p.ToolCall.Content)
			continue
		}
		var u update
		require.NoError(t, json.Unmarshal([]byte(line), &u))
		tell.update(u)
	}
	tell.emitCalls()
	return tell, r
}

func chunk(id, text string) string {
	b, _ := json.Marshal(map[string]any{ // a piece of text
		"sessionUpdate": "agent_message_chunk", "messageId": id, "content": map[string]any{"type": "text", "text": text},
	})
	return string(b)
}

// TestWhatTheAnswerIs tests where one message ends and the next begins, which determines the answer.
func TestWhatTheAnswerIs(t *testing.T) {
	t.Parallel()
	const tool = `{"sessionUpdate":"tool_call","toolCallId":"1","title":"bash","status":"completed"}`
	for name, c := range map[string]struct {
		lines  []string
		answer string
	}{
		"pieces":                  {[]string{chunk("", "one "), chunk("", "two")}, "one two"},
		"named messages":          {[]string{chunk("a", "one"), chunk("b", "two"), chunk("b", " three")}, "two three"},
		"after a tool":            {[]string{chunk("", "one"), tool, chunk("", "two")}, "two"},
		"nothing after a tool":    {[]string{chunk("", "one"), tool}, ""},
		"after a thought":         {[]string{chunk("", "one"), `{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"hm"}}`, chunk("", "two")}, "two"},
		"after a plan":            {[]string{chunk("", "one"), `{"sessionUpdate":"plan","entries":[]}`, chunk("", "two")}, "two"},
		"commands inside":         {[]string{chunk("a", "one "), `{"sessionUpdate":"available_commands_update"}`, chunk("a", "two")}, "one two"},
		"after a late replay":     {[]string{chunk("", "old"), `{"sessionUpdate":"user_message_chunk","content":{"type":"text","text":"x"}}`, chunk("", "new")}, "new"},
		"after a permission":      {[]string{chunk("", "one"), `ask {"toolCall":{"toolCallId":"9","title":"rm"}}`, chunk("", "two")}, "two"},
		"a warning first":         {[]string{chunk("", "Warning: old model\n\n"), chunk("a", "two")}, "two"},
		"a warning, then unnamed": {[]string{chunk("", "Warning: old model\n\n"), chunk("", "two")}, "two"},
		"a warning inside":        {[]string{chunk("a", "one "), chunk("", "careful"), chunk("a", "two")}, "one two"},
		"glued to a warning":      {[]string{chunk("", "Old model."), chunk("", "---\na: b\n---\n"), chunk("", "Done.")}, "---\na: b\n---\nDone."},
		"glued, in pieces":        {[]string{chunk("", "Old model."), chunk("", "---"), chunk("", "\na: b\n---\n")}, "---\na: b\n---"},
		"a rule inside":           {[]string{chunk("", "---\na: b\n---\none\n\n"), chunk("", "---"), chunk("", "\ntwo")}, "---\na: b\n---\none\n\n---\ntwo"},
		"dashes":                  {[]string{chunk("", "one"), chunk("", "--- two")}, "one--- two"},
		"a picture":               {[]string{`{"sessionUpdate":"agent_message_chunk","content":{"type":"image","mimeType":"image/png","data":"AAAA"}}`}, "[image image/png]"},
		"a sub-agent":             {[]string{chunk("a", "one"), `{"sessionUpdate":"agent_message_chunk","messageId":"z","_meta":{"claudeCode":{"parentToolUseId":"1"}},"content":{"type":"text","text":"sub"}}`}, "one"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell, r := story(t, c.lines...)
			require.Equal(t, c.answer, strings.TrimSpace(r.answer()))
			require.Equal(t, c.answer != "", tell.answered())
		})
	}
}

// Some agents send their own errors as text from the model.
func TestErrorsAsText(t *testing.T) {
	t.Parallel()
	const status = `{"sessionUpdate":"session_info_update","_meta":{"codex":{"threadStatus":{"type":"systemError"}}}}`
	for name, c := range map[string]struct {
		lines []string
		want  string
	}{
		"an answer":          {[]string{chunk("", "An Error: no.")}, ""},
		"an error":           {[]string{chunk("", "Error: HTTP 400: no such model")}, "Error: HTTP 400: no such model"},
		"with a status":      {[]string{chunk("", "HTTP 503: later")}, "HTTP 503: later"},
		"after work":         {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"x"}`, chunk("", "Error: in the code")}, ""},
		"codex":              {[]string{chunk("", "Warning: x\n\n"), status, chunk("", `{"error":{"code":400}}`)}, `{"error":{"code":400}}`},
		"codex, and no text": {[]string{status}, "the agent reported an unknown error"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tell, _ := story(t, c.lines...)
			require.Equal(t, c.want, tell.failure())
		})
	}
}

// Agents differ in how they name tools and report results.
func TestToolCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ lines, want []string }{
		"name":        {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"List files","name":"ls","status":"completed","rawOutput":"a"}`}, []string{"ls", "a"}},
		"first title": {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"bash"}`, `{"sessionUpdate":"tool_call_update","toolCallId":"1","title":"ls -l","status":"completed","rawOutput":{"output":"a","exit":0}}`}, []string{"bash", "a"}},
		"kind":        {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"ls -l","kind":"execute","status":"failed","rawOutput":{"error":"no"}}`}, []string{"execute", "no"}},
		"gemini":      {[]string{`{"sessionUpdate":"tool_call","toolCallId":"run_it__run_it_17_0","title":"ls -l","kind":"execute","status":"completed","content":[{"type":"content","content":{"type":"text","text":"b"}}]}`}, []string{"run_it", "b"}},
		"claude":      {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"ls -l","kind":"execute","_meta":{"claudeCode":{"toolName":"Bash"}},"status":"completed","rawOutput":[1]}`}, []string{"Bash", "[1]"}},
		"diff":        {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","title":"edit","status":"completed","content":[{"type":"diff","path":"/w/a","newText":"x"}]}`}, []string{"edit", "[changed /w/a]"}},
		"terminal": {[]string{
			`{"sessionUpdate":"tool_call","toolCallId":"1","title":"sh","_meta":{"terminal_output_delta":{"data":"one "}}}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed","_meta":{"terminal_output_delta":{"data":"two"}}}`,
		}, []string{"sh", "one two"}},
		"no title": {[]string{`{"sessionUpdate":"tool_call","toolCallId":"1","status":"completed"}`}, []string{"tool", ""}},
		"refused, and never told of": {[]string{
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","kind":"edit","status":"failed","content":[{"type":"content","content":{"type":"text","text":"Plan mode."}}]}`,
			`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"failed"}`,
		}, []string{"edit", "Plan mode."}},
		"unknown": {[]string{`{"sessionUpdate":"tool_call_update","toolCallId":"1","status":"completed"}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, r := story(t, c.lines...)
			var got []string
			for _, e := range r.events {
				switch e.Kind {
				case cliagent.Called:
					got = append(got, e.Call.Name)
				case cliagent.Returned:
					got = append(got, e.Text)
				}
			}
			require.Equal(t, c.want, got)
		})
	}
}

// Qwen Code reports the usage of each request with an empty piece of text.
func TestUsageOfQuestions(t *testing.T) {
	t.Parallel()
	const used = `{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":""},"_meta":{"usage":{"inputTokens":100,"outputTokens":5,"totalTokens":105,"cachedReadTokens":40}}}`
	tell, r := story(t, chunk("", "one "), used, chunk("", "two"), used)
	require.Equal(t, "one two", r.answer())
	u := usage(prompted{}, tell)
	require.EqualValues(t, 120, u.InputTokens)
	require.EqualValues(t, 80, u.CacheReadTokens)
	require.EqualValues(t, 10, u.OutputTokens)
}

// Cached tokens and reasoning are counted once, whether or not an agent includes them in its other figures.
func TestUsageByTheTotal(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		total, input int64
		wantInput    int64
		wantOutput   int64
	}{
		"all apart":       {total: 222, input: 10, wantInput: 10, wantOutput: 52},
		"cached in input": {total: 222, input: 170, wantInput: 10, wantOutput: 52},
		"thoughts in it":  {total: 190, input: 10, wantInput: 10, wantOutput: 20},
		"both in it":      {total: 190, input: 170, wantInput: 10, wantOutput: 20},
		"no total":        {input: 10, wantInput: 10, wantOutput: 20},
	} {
		t.Run(name, func(t *testing.T) {
			output, cached, thought := int64(20), int64(160), int64(32)
			var u protocol.Usage
			require.True(t, tokenCount{Total: &c.total, Input: &c.input, Output: &output, CacheRead: &cached, Thought: &thought}.add(&u))
			require.Equal(t, protocol.Usage{InputTokens: c.wantInput, OutputTokens: c.wantOutput, CacheReadTokens: 160, ReasoningTokens: 32}, u)
		})
	}
}

// By the protocol, an answer contains the usage of the session; some agents count each prompt separately.
func TestUsageOfASession(t *testing.T) {
	t.Parallel()
	answers := []int64{2300, 3450, 1150} // the last is smaller, so it is not a total
	for name, want := range map[string][]int64{
		"Copilot": {2300, 1150, 1150}, "@agentclientprotocol/claude-agent-acp": {2300, 3450, 1150},
	} {
		c := &client{}
		c.agent.Info.Name = name
		var got []int64
		for _, n := range answers {
			u := c.spent(prompted{Usage: tokenCount{Input: &n}}, newEmitter(func(cliagent.Event) {}))
			got = append(got, u.InputTokens)
		}
		require.Equal(t, want, got, name)
	}
}
