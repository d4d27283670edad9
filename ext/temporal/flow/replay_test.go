package flow

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// Workflows that are running when a worker is upgraded are replayed by the new one: with
// their histories it must do what the old one did. A change of Run that a recorded history
// contradicts wants workflow.GetVersion, or another Name. The histories are of a real
// server (go test -tags temporal -run TestOnAServer -record); those of earlier versions
// stay.
func TestHistoriesAreReplayed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join("testdata", "*.json"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			require.NoError(t, replayer(Run).ReplayWorkflowHistoryFromJSONFile(nil, file))
		})
	}
	other := func(ctx workflow.Context, t Thread) (Ended, error) {
		return Ended{}, workflow.ExecuteActivity(workflow.WithActivityOptions(ctx, workflow.ActivityOptions{StartToCloseTimeout: longest}), "another", t).Get(ctx, nil)
	}
	for _, file := range files {
		require.Error(t, replayer(other).ReplayWorkflowHistoryFromJSONFile(nil, file), "one that does something else is told apart")
	}
}

func replayer(run any) worker.WorkflowReplayer {
	r := worker.NewWorkflowReplayer()
	r.RegisterWorkflowWithOptions(run, workflow.RegisterOptions{Name: Name})
	return r
}
