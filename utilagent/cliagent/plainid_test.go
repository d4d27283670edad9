package cliagent_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// A session ID comes from a program's output and becomes an argument.
func TestAnIDThatIsNotPlainIsNoSession(t *testing.T) {
	t.Parallel()
	for _, id := range []string{"--dangerously-evil", "-x", "../../etc", "a/b", "{prompt}", "é", strings.Repeat("x", 201)} {
		b := set(t, toy(), "").plays("S "+id+"\n"+good+"\n.", "S "+id+"\n"+good+"\n.")
		b.adapter.Sessions.Optional, b.adapter.Sessions.Preset = true, false
		got := b.step().Succeeded()
		require.True(t, strings.HasPrefix(got.Step.SessionID, "none-"), got.Step.SessionID)
	}
}
