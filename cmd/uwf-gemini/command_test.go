package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
	"github.com/united-workforce/uwf/utilagent/errorkind"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const begin = "--output-format stream-json --approval-mode "
	for want, c := range map[string]cliagent.Call{
		"yolo --session-id ID":                 {Permission: cliagent.Bypass, Session: "ID"},
		"auto_edit -m pro --resume ID --debug": {Permission: cliagent.Edits, Model: "pro", Resume: true, Session: "ID", Extra: []string{"--debug"}},
		"default --session-id ID":              {Permission: cliagent.Readonly, Session: "ID", Help: "--session-id"},
		"default":                              {Permission: cliagent.Readonly, Session: "ID", Help: "an older version"},
	} {
		c.Prompt = "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, begin+want, strings.Join(inv.Args, " "))
		require.Equal(t, "the prompt", inv.Stdin)
	}
}

// Without an output line, the exit status determines the outcome.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	apiError := `{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: oh]"}}`
	for _, c := range []struct {
		code   int
		stdout string
		kind   cliagent.OutcomeKind
		error  errorkind.Kind
	}{
		{41, "", cliagent.Failed, errorkind.Auth},
		{42, "", cliagent.Failed, errorkind.BadUsage},
		{53, "", cliagent.MaxTurns, ""},
		{55, "", cliagent.Failed, errorkind.UntrustedDir},
		{429 & 0xff, apiError, cliagent.Failed, errorkind.RateLimit},
		{500 & 0xff, apiError, cliagent.Failed, errorkind.Server},
		{403 & 0xff, apiError, cliagent.Failed, errorkind.Auth},
		{1, apiError, cliagent.Failed, errorkind.Unknown},
	} {
		seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(c.stdout), cliagent.Exit{Code: c.code})
		require.NoError(t, err)
		require.Equal(t, c.kind, seen.Kind, c.code)
		require.Equal(t, c.error, seen.Error, c.code)
	}
}

// Older versions do not separate cached tokens.
func TestOlderStats(t *testing.T) {
	t.Parallel()
	stream := `{"type":"init","session_id":"S"}
{"type":"message","role":"assistant","content":"the answer"}
{"type":"error","severity":"warning","message":"a loop?"}
{"type":"result","status":"success","stats":{"input_tokens":10,"cached":4,"output_tokens":2}}`
	seen, err := cliagent.Replay(t.Context(), adapter(), cliagent.Call{}, strings.NewReader(stream), cliagent.Exit{})
	require.NoError(t, err)
	require.Equal(t, cliagent.OK, seen.Kind)
	require.Equal(t, "the answer", seen.Answer)
	require.EqualValues(t, 6, seen.Usage.InputTokens)
	require.EqualValues(t, 4, seen.Usage.CacheReadTokens)
}
