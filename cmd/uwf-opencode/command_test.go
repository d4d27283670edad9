package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	none := func(string) string { return "" }
	for want, c := range map[string]cliagent.Call{
		"run --format json --title uwf":                  {Permission: cliagent.Bypass},
		"run --format json --title mine":                 {Permission: cliagent.Bypass, Extra: []string{"--title", "mine"}},
		"run --format json -m a/b -s ses_1 --agent plan": {Permission: cliagent.Edits, Model: "a/b", Resume: true, Session: "ses_1", Extra: []string{"--agent", "plan"}},
		"run --format json -s ses_1 --fork":              {Permission: cliagent.Readonly, Resume: true, Fork: true, Session: "ses_1"},
	} {
		c.Prompt, c.Env = "the prompt", none
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(inv.Args, " "))
		require.Equal(t, "the prompt", inv.Stdin)
	}
}

// The permission overrides the user's environment, whose other settings stay.
func TestSettings(t *testing.T) {
	t.Parallel()
	own := func(string) string { return `{"model":"a/b","permission":{"bash":"ask"},"autoupdate":true}` }
	for permission, shell := range map[cliagent.Permission]any{cliagent.Bypass: "allow", cliagent.Edits: "deny", cliagent.Readonly: "deny"} {
		text, err := settings(cliagent.Call{Permission: permission, Env: own})
		require.NoError(t, err)
		var got struct {
			Model      string
			Autoupdate bool
			Permission map[string]any
		}
		require.NoError(t, json.Unmarshal([]byte(text), &got))
		require.Equal(t, "a/b", got.Model)
		require.False(t, got.Autoupdate)
		require.Equal(t, shell, got.Permission["*"])
		require.NotContains(t, got.Permission, "bash")
	}
	_, err := settings(cliagent.Call{Env: func(string) string { return "{ not json" }})
	require.ErrorContains(t, err, configVar)
}

// An apparently final step is not final if the model continues because opencode has compacted the
// conversation.
func TestContinuesAfterStop(t *testing.T) {
	t.Parallel()
	stream := strings.Join([]string{
		`{"type":"step_start","sessionID":"ses_1","part":{"messageID":"m1"}}`,
		`{"type":"text","sessionID":"ses_1","part":{"messageID":"m1","text":"so far"}}`,
		`{"type":"step_finish","sessionID":"ses_1","part":{"messageID":"m1","reason":"stop","tokens":{"input":1,"output":1,"cache":{}}}}`,
		`{"type":"step_start","sessionID":"ses_1","part":{"messageID":"m2"}}`,
		`{"type":"reasoning","sessionID":"ses_1","part":{"messageID":"m2","text":"hm"}}`,
		`{"type":"tool_use","sessionID":"ses_1","part":{"messageID":"m2","tool":"read","callID":"c","state":{"status":"error","input":{"filePath":"x"},"error":"no such file"}}}`,
	}, "\n")
	replay := func(stream string) cliagent.Seen {
		seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{Env: func(string) string { return "" }}, strings.NewReader(stream), cliagent.Exit{})
		require.NoError(t, err)
		return seen
	}
	require.NotEqual(t, cliagent.OK, replay(stream).Kind)
	seen := replay(stream + `
{"type":"text","sessionID":"ses_1","part":{"messageID":"m3","text":"the answer"}}
{"type":"step_finish","sessionID":"ses_1","part":{"messageID":"m3","reason":"stop","cost":0.5,"tokens":{"input":1,"output":1,"cache":{"read":3}}}}`)
	require.Equal(t, cliagent.OK, seen.Kind)
	prosetest.Text(t, seen.Answer)
	require.EqualValues(t, 2, seen.Usage.InputTokens)
	require.EqualValues(t, 3, seen.Usage.CacheReadTokens)
	require.InDelta(t, 0.5, *seen.Usage.CostUSD, 1e-9)
}

// An answer that ends at the limit of tokens is only a part.
func TestTruncatedAnswer(t *testing.T) {
	t.Parallel()
	for reason, truncated := range map[string]bool{"length": true, "unknown": false} {
		seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(
			`{"type":"text","sessionID":"s","part":{"messageID":"m","text":"---\na: 1\n---\n"}}`+"\n"+
				`{"type":"step_finish","sessionID":"s","part":{"messageID":"m","reason":"`+reason+`"}}`+"\n"), cliagent.Exit{})
		require.NoError(t, err)
		require.Equal(t, cliagent.Incomplete, seen.Kind)
		require.Equal(t, truncated, seen.Truncated, reason)
	}
}
