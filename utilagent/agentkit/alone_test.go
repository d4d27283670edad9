package agentkit_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
	"github.com/united-workforce/uwf/util/prosetest"
	"github.com/united-workforce/uwf/utilagent/agentkit"
	"github.com/united-workforce/uwf/utilagent/agentkittest"
)

// TestNoUwfIsNeeded checks that an agent validates its output without uwf.
func TestNoUwfIsNeeded(t *testing.T) {
	t.Parallel()
	schema := map[string]any{
		"type": "object", "required": []any{"$status", "mail"},
		"properties": map[string]any{
			"$status": map[string]any{"type": "string"},
			"mail":    map[string]any{"format": "email"},
			"urgency": map[string]any{"maximum": 5},
		},
	}
	play := func(mail string, urgency int) *agentkittest.Outcome {
		o := agentkit.Options{Name: "alone", Structured: true, Run: func(context.Context, *agentkit.Request) (agentkit.Result, error) {
			return agentkit.Result{Value: map[string]any{"$status": "done", "mail": mail, "urgency": urgency}, SessionID: "s"}, nil
		}}
		th := agentkittest.New(t, agentkittest.Scenario{Schema: schema, Environ: []string{"PATH=" + t.TempDir(), protocol.EnvBin + "="}})
		return th.Play(func(e agentkit.Process) int { return agentkit.Main(t.Context(), e, o) })
	}
	got := play(`"a b"@b.example`, 5).Succeeded()
	require.Equal(t, `"a b"@b.example`, got.Output.(map[string]any)["mail"])
	wrong := play("nobody", 9)
	prosetest.Text(t, wrong.Failed().ErrorText())
	prosetest.Text(t, wrong.Failed().ErrorText())
}
