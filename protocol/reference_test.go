package protocol_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// Agents copy commands from the reference, so it must not contain one that changes a thread.
func TestReferenceOnlyReads(t *testing.T) {
	t.Parallel()
	_, rest, ok := strings.Cut(protocol.Reference(), "\n```\n")
	require.True(t, ok, "no fenced block")
	block, _, ok := strings.Cut(rest, "\n```\n")
	require.True(t, ok, "the fenced block does not end")
	require.NotContains(t, rest[len(block)+5:], "```", "more than one fenced block")

	lines := strings.Split(block, "\n")
	require.NotEmpty(t, lines)
	for _, line := range lines {
		command, comment, ok := strings.Cut(line, "#")
		require.True(t, ok, "no comment: %s", line)
		require.NotEmpty(t, strings.TrimSpace(comment))
		words := strings.Fields(command)
		require.GreaterOrEqual(t, len(words), 3, line)
		require.Equal(t, "uwf", words[0])
		require.Contains(t, []string{"read", "steps", "show", "step-details"}, words[2], line)
	}
}
