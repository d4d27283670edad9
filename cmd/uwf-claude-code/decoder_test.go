package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/cliagent/cliagenttest"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

// Cases missing from the recorded runs.
func TestDecoder(t *testing.T) {
	t.Parallel()
	init := `{"type":"system","subtype":"init","session_id":"s","model":"m","claude_code_version":"2.1.329"}` + "\n"
	say := func(text string) string {
		return `{"type":"assistant","session_id":"s","message":{"id":"m1","content":[{"type":"text","text":"` + text + `"}]}}` + "\n"
	}
	result := func(fields string) string {
		return `{"session_id":"s",` + fields + `,"type":"result"}` + "\n"
	}
	tests := map[string]struct {
		lines   string
		exit    cliagent.Exit
		kind    cliagent.OutcomeKind
		failure errorkind.Kind
		session string
		turns   []string
	}{
		"interrupted, with exit status 0": {
			lines: init + say("I begin.") + result(`"subtype":"error_during_execution","terminal_reason":"aborted_tools","is_error":true`),
			kind:  cliagent.Interrupted, session: "s", turns: []string{"I begin."},
		},
		"the budget": {
			lines: init + say("I begin.") + result(`"subtype":"error_max_budget_usd","is_error":true`),
			exit:  cliagent.Exit{Code: 1}, kind: cliagent.Budget, session: "s", turns: []string{"I begin."},
		},
		"no result line, ended by a signal": {
			lines: init + say("I begin."), exit: cliagent.Exit{Code: -1, Signal: "killed"},
			kind: cliagent.Failed, failure: cliagent.Crashed, session: "s", turns: []string{"I begin."},
		},
		"no result line, exit status 0": {
			lines: init + say("I begin."), kind: cliagent.Incomplete, session: "s", turns: []string{"I begin."},
		},
		"a conversation that is too long": {
			lines: init + result(`"subtype":"success","is_error":true,"api_error_status":400,"result":"prompt is too long: 210000 tokens"`),
			exit:  cliagent.Exit{Code: 1}, kind: cliagent.Failed, failure: errorkind.Context,
		},
		"the model declines": {
			lines: init + say("No.") + result(`"subtype":"success","stop_reason":"refusal","result":"No."`), kind: cliagent.Refusal, session: "s", turns: []string{"No."},
		},
		"two objects on a line, behind a warning": {
			lines: "warning: {no json} here\nwarning: " + strings.ReplaceAll(init+say("The end."), "\n", "") + "\n(node) x" + result(`"subtype":"success","result":"The end."`),
			kind:  cliagent.OK, session: "s", turns: []string{"The end."},
		},
		"a sub-agent, results in blocks, thoughts, and lines of the future": {
			lines: init +
				`{"type":"assistant","message":{"id":"m1","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"t1","name":"Task","input":{"a":1}}]},"session_id":"s"}` + "\n" +
				`{"type":"user","parent_tool_use_id":"t1","message":{"content":[{"type":"text","text":"the sub-agent's task"}]},"session_id":"s"}` + "\n" +
				`{"type":"assistant","parent_tool_use_id":"t1","message":{"id":"m2","content":[{"type":"text","text":"---\nfrom: below\n---"}]},"session_id":"s"}` + "\n" +
				`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","is_error":true,"content":[{"type":"text","text":"one"},{"type":"image"},{"type":"text","text":"two"}]}]},"session_id":"s"}` + "\n" +
				`{"type":"of_the_future","message":7}` + "\n" + `{"type":"system","subtype":"compact_boundary"}` + "\n" + say("The end.") +
				result(`"subtype":"success","result":"The end."`),
			kind: cliagent.OK, session: "s",
			turns: []string{"hm Task", "[sub-agent] ---\nfrom: below\n---", "[failed] one\n[image]\ntwo", "claude summarised the conversation so far", "The end."},
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(tt.lines), tt.exit)
			require.NoError(t, err)
			require.Equal(t, tt.kind, seen.Kind, "%+v", seen.Outcome)
			require.Equal(t, tt.failure, seen.Error)
			require.Equal(t, tt.session, seen.Session)
			var turns []string
			for _, turn := range seen.Turns {
				text := turn.Reasoning + turn.Content
				for _, call := range turn.ToolCalls {
					text += " " + call.Name
				}
				turns = append(turns, text)
			}
			require.ElementsMatch(t, tt.turns, turns)
			if tt.kind == cliagent.OK {
				require.Equal(t, "The end.", seen.Answer)
			}
		})
	}
}

func TestCommandLine(t *testing.T) {
	t.Parallel()
	now := cliagent.ParseVersion("2.1.329")
	const always = "-p --output-format stream-json --verbose --input-format stream-json --replay-user-messages --setting-sources user"
	for want, call := range map[string]cliagent.Call{
		" --max-turns 90 --dangerously-skip-permissions --session-id s":              {Version: now, Session: "s", MaxTurns: 90},
		" --permission-mode acceptEdits --resume s":                                  {Version: now, Session: "s", Resume: true, Permission: cliagent.Edits},
		" --permission-mode plan --resume s --fork-session --session-id t --model m": {Version: now, Session: "s", Resume: true, Fork: true, Copy: "t", Permission: cliagent.Readonly, Model: "m"},
		" --permission-mode plan --resume s --fork-session --model m":                {Version: cliagent.V(2, 0, 30), Session: "s", Resume: true, Fork: true, Copy: "t", Permission: cliagent.Readonly, Model: "m"},
		` --max-budget-usd 0.5 --dangerously-skip-permissions --session-id s --effort high --json-schema {"type":"object"}`: {
			MaxCostUSD: 0.5, Session: "s", Extra: []string{"--effort", "high", "--structured"}, Schema: map[string]any{"type": "object"},
		},
	} {
		call.Prompt = "-the prompt"
		inv, err := command(call)
		require.NoError(t, err)
		require.Equal(t, always+want, strings.Join(inv.Args, " "))
		require.Contains(t, inv.Stdin, "-the prompt")
		require.True(t, inv.Open)
	}
	inv, err := command(cliagent.Call{Env: func(name string) string { return map[string]string{"CLAUDE_CODE_MAX_RETRIES": "9"}[name] }})
	require.NoError(t, err)
	require.NotContains(t, strings.Join(inv.Env, " "), "MAX_RETRIES", "what the user has set stays")
	require.Contains(t, inv.Env, "DISABLE_AUTOUPDATER=1")
}

// An answer that ends at the limit of tokens is only a part, unless its data is complete.
func TestTruncatedAnswer(t *testing.T) {
	t.Parallel()
	for fields, truncated := range map[string]bool{
		`"stop_reason":"max_tokens"`: true, `"stop_reason":"model_context_window_exceeded"`: true, `"stop_reason":"end_turn"`: false,
		`"stop_reason":"max_tokens","structured_output":{"a":1}`: false,
	} {
		seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(
			`{"type":"assistant","session_id":"s","message":{"id":"m","content":[{"type":"text","text":"---\na: 1\n---\n"}]}}`+"\n"+
				`{"type":"result","subtype":"success","session_id":"s","result":"---\na: 1\n---\n",`+fields+"}\n"), cliagent.Exit{})
		require.NoError(t, err)
		require.Equal(t, truncated, seen.Truncated, fields)
		require.Equal(t, truncated, seen.Kind == cliagent.Incomplete, fields)
	}
}

func FuzzDecoder(f *testing.F) { cliagenttest.FuzzDecoder(f, adapter()) }

func TestStreams(t *testing.T) {
	t.Parallel()
	cliagenttest.Streams(t, adapter())
}
