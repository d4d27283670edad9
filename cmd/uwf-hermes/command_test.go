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
	} {
		c.Prompt = "the prompt"
		inv, err := command(c)
		require.NoError(t, err)
		require.Equal(t, want, strings.Join(inv.Args, " "))
		require.Equal(t, "the prompt", inv.Stdin)
	}
	_, err := command(cliagent.Call{Permission: cliagent.Readonly, Help: newHelp})
	var e *cliagent.Error
	require.ErrorAs(t, err, &e)
	require.NotEmpty(t, e.Hints())
	_, err = command(cliagent.Call{Permission: cliagent.Bypass, Help: "-q --quiet"})
	require.ErrorAs(t, err, &e)
	require.Equal(t, cliagent.TooOld, e.Kind)
}
