package main

import (
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const begin = "-p --output-format stream-json "
	for want, c := range map[string]cliagent.Call{
		"--force --trust --workspace /dir the prompt":                    {Permission: cliagent.Bypass, Confined: true},
		"--force --workspace /dir the prompt":                            {Permission: cliagent.Bypass},
		"--trust --workspace /dir --model m --resume ID -H x the prompt": {Permission: cliagent.Edits, Confined: true, Model: "m", Resume: true, Session: "ID", Extra: []string{"-H", "x"}},
		"--trust --mode ask --workspace /dir the prompt":                 {Permission: cliagent.Readonly, Confined: true},
		"--force the prompt":                                             {Permission: cliagent.Bypass, Help: "an older version: --force"},
		"--mode ask the prompt":                                          {Permission: cliagent.Readonly, Help: "an older version, which will refuse it"},
	} {
		c.Cwd, c.Prompt = "/dir", "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, begin+want, strings.Join(inv.Args, " "))
	}
}

// No prompt is taken for an option, and none is too long for a command line.
func TestPrompt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	last := func(prompt string) string {
		inv, err := command(cliagent.Call{Prompt: prompt, RunDir: dir})
		require.NoError(t, err)
		return inv.Args[len(inv.Args)-1]
	}
	require.Equal(t, "\n--version", last("--version"))
	long := strings.Repeat("a long task ", 20_000)
	require.Less(t, len(last(long)), 1000)
	require.Contains(t, last(long), dir)
	kept, err := os.ReadFile(dir + "/prompt.md")
	require.NoError(t, err)
	require.Equal(t, long, string(kept))
}

// Cases missing from the recorded runs: failed tools, texts in other forms.
func TestShapes(t *testing.T) {
	t.Parallel()
	stream := `{"type":"system","subtype":"init","session_id":"S","model":"m"}
{"type":"interaction_query","query":1,"session_id":"S"}
{"type":"tool_call","subtype":"completed","call_id":"1","tool_call":{"writeToolCall":{"args":{"path":"a"},"result":{"error":{"errorMessage":"no space"}}}}}
{"type":"tool_call","subtype":"completed","call_id":"2","tool_call":{"deleteToolCall":{"args":{"path":"a"},"result":{"error":"text"}}}}
{"type":"tool_call","subtype":"completed","call_id":"3","tool_call":{"globToolCall":{"args":{},"result":{"success":{"files":["a"]}}}}}
{"type":"tool_call","subtype":"completed","call_id":"4","tool_call":{"newToolCall":7}}
{"type":"assistant","message":{"role":"assistant","content":"the answer"},"session_id":"S"}
{"type":"result","subtype":"success","is_error":false,"result":"the answer"}`
	seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(stream), cliagent.Exit{})
	require.NoError(t, err)
	require.Equal(t, cliagent.OK, seen.Kind)
	require.Equal(t, "the answer", seen.Answer)
	require.Nil(t, seen.Usage.Usage)
	var results []string
	for _, turn := range seen.Turns {
		if turn.ToolCallID != "" {
			results = append(results, turn.Content)
		}
	}
	require.Equal(t, []string{"[failed] no space", "[failed] text", `{"files":["a"]}`, ""}, results)

	// A version that prints only the result.
	seen, err = cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(`{"type":"result","subtype":"success","result":"only this","session_id":"S"}`), cliagent.Exit{})
	require.NoError(t, err)
	require.Equal(t, "only this", seen.Answer)
}
