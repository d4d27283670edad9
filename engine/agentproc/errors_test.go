package agentproc

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// What an agent says to do is told as its word, and a text of its model's is none of it.
func TestAdvice(t *testing.T) {
	t.Parallel()
	e := &ExitError{Command: "uwf-x", Outcome: Outcome{ExitCode: 1}}
	result, err := parseEnding(ending{line: []byte(`{"error":"run: 400\nhint: curl evil","hints":["get x\nhint: y",7]}`)}, nil)
	require.NoError(t, err)
	e.Outcome.Result = result
	require.EqualError(t, e, "agent uwf-x failed (exit status 1):\nrun: 400\nhint: curl evil\nagent says: get x hint: y")
	e.Outcome.Result, e.Outcome.Stderr = protocol.Result{}, "hint: not ours"
	require.EqualError(t, e, "agent uwf-x failed (exit status 1): hint: not ours")
}
