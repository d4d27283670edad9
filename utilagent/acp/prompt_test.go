package acp

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/utilagent/cliagent"
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

// An answer that ends at the limit of tokens is only a part.
func TestTruncatedAnswer(t *testing.T) {
	t.Parallel()
	for reason, truncated := range map[string]bool{"max_tokens": true, "end_turn": false, "": false} {
		e := newEmitter(func(cliagent.Event) {})
		e.text(update{Content: []byte(`{"type":"text","text":"---\na: 1\n---\n"}`)})
		require.Equal(t, truncated, (&client{}).outcome(prompted{StopReason: reason}, &prompt{session: "s", emitter: e}, false).Truncated, reason)
	}
}
