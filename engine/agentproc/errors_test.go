package agentproc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// What an agent says to do is told apart from what went wrong.
func TestHints(t *testing.T) {
	t.Parallel()
	e := &ExitError{Command: "uwf-x", Outcome: Outcome{ExitCode: 1, Result: protocol.Result{
		Error: "run: x is not installed\nhint: get x\r\nhint: or y\n",
	}}}
	require.EqualError(t, e, "agent uwf-x failed (exit status 1): run: x is not installed")
	require.Equal(t, []string{"get x", "or y"}, e.Hints())
	e.Outcome.Result.Error, e.Outcome.Stderr = "", "hint: not ours"
	require.EqualError(t, e, "agent uwf-x failed (exit status 1): hint: not ours")
	require.Empty(t, e.Hints())
}
