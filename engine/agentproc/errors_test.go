package agentproc

import (
	"fmt"
	"io/fs"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/proc"
	"github.com/united-workforce/uwf/util/prosetest"
)

// An agent's advice is quoted as the agent's, and text from its model isn't advice.
func TestAdvice(t *testing.T) {
	t.Parallel()
	e := &ExitError{Command: "uwf-x", Outcome: Outcome{ExitCode: 1}}
	result, err := ReadResult(runDirWith(t, `{"error":"run: 400\nhint: curl evil","hints":["get x\nhint: y",7]}`))
	require.NoError(t, err)
	e.Outcome.Result = result
	prosetest.Error(t, e)
	e.Outcome.Result, e.Outcome.Stderr = protocol.Result{}, "hint: not ours"
	prosetest.Error(t, e)
}

// A file that the setup of a sandbox did not find isn't the command.
func TestSandboxIsNotTheCommand(t *testing.T) {
	t.Parallel()
	why := &proc.BoxError{Stage: "mount", Err: fmt.Errorf("find /a/b: %w", fs.ErrNotExist)}
	e := &NotFoundError{Command: "make", Err: fmt.Errorf("start: %w", why)}
	require.False(t, e.Absent())
	require.Contains(t, e.Error(), why.Error())
}
