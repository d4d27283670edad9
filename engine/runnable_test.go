//go:build unix

package engine

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/united-workforce/uwf/protocol"
)

// A workflow with roles that this version cannot play is refused before a thread is created. No agent plays
// them instead.
func TestRolesThatCannotBePlayedYetAreRefused(t *testing.T) {
	t.Parallel()
	for want, grow := range map[string]func(*protocol.Workflow, *protocol.Role){
		`"workspace"`: func(_ *protocol.Workflow, r *protocol.Role) { r.Workspace = "elsewhere" },
		`"memo"`:      func(_ *protocol.Workflow, r *protocol.Role) { r.Memo = true },
		`"tools"`:     func(_ *protocol.Workflow, r *protocol.Role) { r.Tools = []string{"read"} },
	} {
		w := newWorld(t, "")
		flow, schema := testWorkflow(nil)
		role := flow.Roles["worker"]
		grow(&flow, &role)
		flow.Roles["worker"] = role
		_, err := w.Start(t.Context(), protocol.Start{Workflow: w.put(flow, schema), Prompt: "go", Cwd: w.dir}, StartOptions{})
		require.ErrorContains(t, err, want)
		require.ErrorContains(t, err, "does not support")
	}
}
