package flow

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"go.temporal.io/sdk/worker"
	"go.temporal.io/sdk/workflow"
)

// When a worker is upgraded, the new one replays running workflows, and must make the same decisions as the
// old one. A change of Run that contradicts a recorded history needs workflow.GetVersion or another Name. The
// histories are recorded on a real server (go test -tags temporal -run TestOnAServer -record); keep the
// histories of earlier versions.
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
