package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

const newHelp = "--query-file PATH --format {text,stream-json} --source SOURCE"

func TestCommand(t *testing.T) {
	t.Parallel()
	for want, c := range map[string]cliagent.Call{
		"chat --query-file - --format stream-json --yolo --max-turns 90 --source tool":         {Permission: cliagent.Bypass, MaxTurns: 90, Help: newHelp},
		"chat --query-file - --format stream-json --source tool -m x --resume ID --provider p": {Permission: cliagent.Edits, Model: "x", Resume: true, Session: "ID", Extra: []string{"--provider", "p"}, Help: newHelp},
		"chat -q the prompt --quiet --yolo --max-turns 90 --source tool":                       {Permission: cliagent.Bypass, MaxTurns: 90},
		"chat -q the prompt --quiet --yolo --max-turns 5 --resume ID":                          {Permission: cliagent.Bypass, MaxTurns: 5, Resume: true, Session: "ID", Help: "-q --quiet --yolo"},
	} {
		c.Prompt = "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(inv.Args, " "))
		require.Equal(t, strings.Contains(want, "--query-file"), inv.Stdin == "the prompt")
		require.Equal(t, strings.Contains(want, "--quiet"), inv.Silent)
	}
	_, err := command(cliagent.Call{Permission: cliagent.Readonly, Help: newHelp})
	var e *cliagent.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Hints())
}

// The older format: where the id stands, and what is not the answer.
func TestQuiet(t *testing.T) {
	t.Parallel()
	const answer = "---\nstatus: done\n---\n\nDone.\n\n\nThe end."
	for name, c := range map[string]struct {
		stdout, stderr string
		resume         bool
		code           int
		session, final string
		kind           cliagent.OutcomeKind
		error          cliagent.ErrorKind
	}{
		"id on stderr":               {stdout: answer, stderr: "\nsession_id: 20261121_013037_de8721\n"},
		"id on stderr, with a flood": {stdout: answer, stderr: strings.Repeat("x\n", 9999) + "session_id: 20261121_013037_de8721\n" + strings.Repeat("y\n", 9999)},
		"id on the first line":       {stdout: "session_id: 20261121_013037_de8721\n\n" + answer},
		"id on the last line":        {stdout: answer + "\n\nsession_id: 20261121_013037_de8721\n"},
		"an id of another form":      {stdout: answer + "\nsession_id: abc\n", session: "abc"},
		"the last id counts":         {stdout: answer, stderr: "session_id: 20261121_013037_000000\nsession_id: 20261121_013037_de8721\n"},
		"a banner":                   {stdout: "↻ Resumed session 20261121_013037_de8721 (2 messages)\n" + answer, stderr: "session_id: 20261121_013037_de8721"},
		"a field of that name": {
			stdout: "---\nsession_id: mine\nstatus: done\n---\n", stderr: "session_id: 20261121_013037_de8721",
			final: "---\nsession_id: mine\nstatus: done\n---",
		},
		"CR LF":                     {stdout: strings.ReplaceAll(answer, "\n", "\r\n"), stderr: "session_id: 20261121_013037_de8721\r\n"},
		"failed, but answered":      {stdout: answer, stderr: "session_id: 20261121_013037_de8721", code: 1},
		"session not found":         {stdout: "Session not found: 20261121_013037_de8721\n", resume: true, code: 1, kind: cliagent.SessionLost},
		"not found, and begun anew": {stdout: "Session not found: 20261121_013037_de8721\n" + answer, resume: true, kind: cliagent.SessionLost},
		"no key":                    {stderr: "Error: HTTP 401: invalid api key", code: 1, kind: cliagent.Failed, error: cliagent.Auth},
		"an error as the answer":    {stdout: "HTTP 429: too many requests", kind: cliagent.Failed, error: cliagent.RateLimit},
		"arguments":                 {stderr: "hermes: error: unrecognized arguments", code: 2, kind: cliagent.Failed, error: cliagent.BadUsage},
		"nothing":                   {kind: cliagent.Incomplete},
		"interrupted":               {stdout: answer, code: 130, kind: cliagent.Failed, error: cliagent.Crashed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := cliagent.Call{Resume: c.resume, Session: map[bool]string{true: "20261121_013037_de8721"}[c.resume]}
			seen, err := cliagent.Replay(t.Context(), adapter(), call, strings.NewReader(c.stdout), cliagent.Exit{Code: c.code, Stderr: c.stderr})
			require.NoError(t, err)
			if c.kind != "" {
				require.Equal(t, c.kind, seen.Kind, "%+v", seen.Outcome)
				if c.error != "" {
					require.Equal(t, c.error, seen.Error)
				}
				return
			}
			require.Equal(t, cliagent.OK, seen.Kind, "%+v", seen.Outcome)
			want, session := c.final, c.session
			if want == "" {
				want = answer
			}
			if session == "" {
				session = "20261121_013037_de8721"
			}
			require.Equal(t, want, seen.Answer)
			require.Equal(t, session, seen.Session)
		})
	}
}
