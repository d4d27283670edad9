package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const begin = `exec --json --skip-git-repo-check -C /dir -c projects={"/dir"={trust_level="untrusted"},"/"={trust_level="untrusted"}} `
	for want, c := range map[string]cliagent.Call{
		"--dangerously-bypass-approvals-and-sandbox -": {Permission: cliagent.Bypass},
		"-s workspace-write -m gpt-5 -":                {Permission: cliagent.Edits, Model: "gpt-5"},
		"-s read-only -c a=b resume ID -":              {Permission: cliagent.Readonly, Extra: []string{"-c", "a=b"}, Resume: true, Session: "ID"},
		`-c default_permissions="uwf" -c permissions.uwf={extends=":workspace",filesystem={"/a b"="deny","/c"="deny"}} -`: {
			Permission: cliagent.Edits, Version: cliagent.V(0, 138, 0), Hidden: []string{"/a b", "/c"}},
		`-c default_permissions="uwf" -c permissions.uwf={extends=":read-only",filesystem={}} resume ID -`: {
			Permission: cliagent.Readonly, Version: cliagent.V(0, 169, 0), Resume: true, Session: "ID"},
		"--dangerously-bypass-approvals-and-sandbox fork ID -":   {Permission: cliagent.Bypass, Resume: true, Fork: true, Session: "ID", Help: "resume fork"},
		"--dangerously-bypass-approvals-and-sandbox resume ID -": {Permission: cliagent.Bypass, Resume: true, Session: "ID", Help: "resume"},
	} {
		c.Cwd, c.Prompt = "/dir", "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, begin+want, strings.Join(inv.Args, " "))
		require.Equal(t, "the prompt", inv.Stdin)
	}
	_, err := command(cliagent.Call{Resume: true, Fork: true, Session: "ID", Help: "resume"})
	require.ErrorIs(t, err, cliagent.ErrCannotFork)
}

// Cases missing from the recorded runs: all kinds of items, and events after the answer.
func TestItems(t *testing.T) {
	t.Parallel()
	stream := strings.Join([]string{
		`{"type":"thread.started","thread_id":"T","future":1}`,
		`{"type":"item.started","item":{"id":"i0","type":"todo_list","items":[{"text":"a","completed":false}]}}`,
		`{"type":"item.completed","item":{"id":"i1","type":"reasoning","text":"**Thinking**"}}`,
		`{"type":"item.completed","item":{"id":"i2","type":"file_change","changes":[{"path":"a.go","kind":"update"}],"status":"completed"}}`,
		`{"type":"item.started","item":{"id":"i3","type":"mcp_tool_call","server":"docs","tool":"search","arguments":{"q":"x"},"status":"in_progress"}}`,
		`{"type":"item.updated","item":{"id":"i3","type":"mcp_tool_call","server":"docs","tool":"search","status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"i3","type":"mcp_tool_call","server":"docs","tool":"search","arguments":{"q":"x"},"result":{"content":[{"type":"text","text":"found"}]},"error":null,"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"i4","type":"mcp_tool_call","server":"docs","tool":"search","arguments":{},"result":null,"error":{"message":"no such tool"},"status":"failed"}}`,
		`{"type":"item.completed","item":{"id":"i5","type":"web_search","query":"uwf"}}`,
		`{"type":"item.completed","item":{"id":"i6","type":"command_execution","command":"false","aggregated_output":"oh\n","exit_code":1,"status":"failed"}}`,
		`{"type":"item.completed","item":{"id":"i7","type":"collab_tool_call","tool":"spawn_agent","status":"completed"}}`,
		`{"type":"error","message":"Reconnecting... 1/5 (stream disconnected)"}`,
		`{"type":"item.completed","item":{"id":"i8","type":"agent_message","text":"the answer"}}`,
		`{"type":"item.completed","item":{"id":"i0","type":"todo_list","items":[{"text":"a","completed":true}]}}`,
		`{"type":"something.new","item":7}`,
		`{"type":"turn.completed","usage":{"input_tokens":10,"cached_input_tokens":4,"output_tokens":2}}`,
	}, "\n")
	seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{Version: cliagent.V(0, 169, 0)}, strings.NewReader(stream), cliagent.Exit{})
	require.NoError(t, err)
	require.Equal(t, cliagent.OK, seen.Kind)
	require.Equal(t, "the answer", seen.Answer)
	require.Equal(t, "T", seen.Session)
	require.EqualValues(t, 6, seen.Usage.InputTokens)
	var calls, results []string
	for _, turn := range seen.Turns {
		for _, call := range turn.ToolCalls {
			calls = append(calls, call.Name)
		}
		if turn.ToolCallID != "" {
			results = append(results, turn.Content)
		}
	}
	require.Equal(t, []string{"file_change", "docs.search", "docs.search", "web_search", "command_execution", "collab_tool_call"}, calls)
	prosetest.Text(t, results)
}
