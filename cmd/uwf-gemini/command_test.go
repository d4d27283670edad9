package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/external"
)

func TestCommand(t *testing.T) {
	t.Parallel()
	const begin = "--output-format stream-json --approval-mode "
	for want, c := range map[string]external.Call{
		"yolo --session-id ID":                 {Permission: external.Bypass, Session: "ID"},
		"auto_edit -m pro --resume ID --debug": {Permission: external.Edits, Model: "pro", Resume: true, Session: "ID", Extra: []string{"--debug"}},
		"default --session-id ID":              {Permission: external.Readonly, Session: "ID", Help: "--session-id"},
		"default":                              {Permission: external.Readonly, Session: "ID", Help: "an older version"},
	} {
		c.Prompt = "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, begin+want, strings.Join(inv.Args, " "))
		require.Equal(t, "the prompt", inv.Stdin)
	}
}

// The exit status tells of what there is no line for.
func TestExitStatus(t *testing.T) {
	t.Parallel()
	apiError := `{"type":"result","status":"error","error":{"type":"unknown","message":"[API Error: oh]"}}`
	for _, c := range []struct {
		code   int
		stdout string
		kind   external.OutcomeKind
		error  external.ErrorKind
	}{
		{41, "", external.Failed, external.Auth},
		{42, "", external.Failed, external.BadUsage},
		{53, "", external.MaxTurns, ""},
		{55, "", external.Failed, external.UntrustedDir},
		{429 & 0xff, apiError, external.Failed, external.RateLimit},
		{500 & 0xff, apiError, external.Failed, external.Server},
		{403 & 0xff, apiError, external.Failed, external.Auth},
		{1, apiError, external.Failed, external.Unknown},
	} {
		seen, err := external.Replay(t.Context(), adapter(), external.Call{}, strings.NewReader(c.stdout), external.Exit{Code: c.code})
		require.NoError(t, err)
		require.Equal(t, c.kind, seen.Kind, c.code)
		require.Equal(t, c.error, seen.Error, c.code)
	}
}

// Older versions do not tell cached tokens apart from the others.
func TestOlderStats(t *testing.T) {
	t.Parallel()
	stream := `{"type":"init","session_id":"S"}
{"type":"message","role":"assistant","content":"the answer"}
{"type":"error","severity":"warning","message":"a loop?"}
{"type":"result","status":"success","stats":{"input_tokens":10,"cached":4,"output_tokens":2}}`
	seen, err := external.Replay(t.Context(), adapter(), external.Call{}, strings.NewReader(stream), external.Exit{})
	require.NoError(t, err)
	require.Equal(t, external.OK, seen.Kind)
	require.Equal(t, "the answer", seen.Answer)
	require.EqualValues(t, 6, seen.Usage.InputTokens)
	require.EqualValues(t, 4, seen.Usage.CacheReadTokens)
}
