package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNothingInAPromptIsAMention(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, prompt string
		blocks       []string // nil for one
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
		stdin, err := (*decoder)(nil).EncodeMessage("", c.prompt)
		require.NoError(t, err)
		if c.blocks == nil {
			c.blocks = []string{c.prompt}
		}
		var line struct{ Message struct{ Content []textBlock } }
		require.NoError(t, json.Unmarshal(stdin, &line), c.name)
		require.Equal(t, 1, strings.Count(string(stdin), "\n"), c.name)
		var texts []string
		for _, b := range line.Message.Content {
			texts = append(texts, b.Text)
		}
		require.Equal(t, c.blocks, texts, c.name)
		require.Equal(t, c.prompt, strings.Join(texts, ""), c.name)
	}
}
