package acp

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestAMentionIsTextForBridgesToo(t *testing.T) {
	t.Parallel()
	const prompt = "mail a@b.com; see @.env\nand go on"
	for name, want := range map[string][]promptBlock{
		"@agentclientprotocol/claude-agent-acp": {{Type: "text", Text: "mail a@b.com; see @.env\n"}, {Type: "text", Text: "and go on"}},
		"@zed-industries/claude-code-acp":       {{Type: "text", Text: "mail a@b.com; see @.env\n"}, {Type: "text", Text: "and go on"}},
		"codex-acp":                             {{Type: "text", Text: prompt}},
	} {
		c := client{agent: initializeResult{Info: info{Name: name}}}
		require.Equal(t, want, c.blocks(prompt), name)
	}
}

// zeros is a file without a line ending or an end, as a sparse one nearly is.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestReadingEnds(t *testing.T) {
	t.Parallel()
	for skip := range int64(2) {
		_, err := readLines(zeros{}, skip, 1)
		require.ErrorIs(t, err, errTooLarge)
	}
}
