package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
)

func TestNothingInAPromptIsAMention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prompt string
		blocks       []string // nil for plain text
	}{
		{"plain", "## Task\nDo it.", nil},
		{"a mail address", "mail a@b.com;\nsee it\n", []string{"mail a@b.com;\n", "see it\n"}},
		{"what follows is a list", "see @a\n\n- one\n/two\nthree @ four\nfive", []string{"see @a\n\n- one\n/two\nthree @ four\n", "five"}},
		{"the last line", "see @/etc/hostname and @.env now", []string{"see @/etc/hostname and @.env ", "now"}},
		{"the last word", "see @/etc/hostname", []string{"see @/", "etc/hostname"}},
		{"another alphabet", "an @ätsch", []string{"an @", "ätsch"}},
		{"a command", "/clear everything", []string{"/clear ", "everything"}},
		{"a command after blanks", "\n /init", []string{"\n /", "init"}},
		{"no place", "what @?", []string{"what @?"}},
		{"nothing behind it", "who is @", []string{"who is @"}},
	} {
		args, stdin, err := input(c.prompt, false)
		require.NoError(t, err)
		if c.blocks == nil {
			require.Empty(t, args, c.name)
			require.Equal(t, c.prompt, stdin, c.name)
			continue
		}
		require.Equal(t, []string{"--input-format", "stream-json"}, args, c.name)
		var line struct{ Message struct{ Content []textBlock } }
		require.NoError(t, json.Unmarshal([]byte(stdin), &line), c.name)
		require.Equal(t, 1, strings.Count(stdin, "\n"), c.name)
		var texts []string
		for _, b := range line.Message.Content {
			texts = append(texts, b.Text)
		}
		require.Equal(t, c.blocks, texts, c.name)
		require.Equal(t, c.prompt, strings.Join(texts, ""), c.name)
	}
}

func TestTheCommandLineWithAMention(t *testing.T) {
	t.Parallel()
	inv, err := command(cliagent.Call{Prompt: "a@b.com is\nmine", Session: "x", Version: cliagent.V(2, 1, 0)})
	require.NoError(t, err)
	require.Contains(t, inv.Args, "--input-format")
	require.Contains(t, inv.Env, "CLAUDE_CODE_DISABLE_FILE_MENTIONS=1")
}
