package engine

import (
	"maps"
	"slices"

	"github.com/united-workforce/uwf/engine/fault"
	"github.com/united-workforce/uwf/protocol"
)

// runnable refuses a workflow with features that this program can store but not run: ignoring
// them would be running a different workflow.
func runnable(w protocol.Workflow) error {
	for _, name := range slices.Sorted(maps.Keys(w.Roles)) {
		for _, field := range []struct {
			said bool
			name string
		}{
			{w.Roles[name].Workspace != "" && w.Roles[name].Workspace != protocol.InWorktree, "workspace"}, {w.Roles[name].Memo, "memo"}, {len(w.Roles[name].Tools) > 0, "tools"},
		} {
			if field.said {
				return fault.New(protocol.CodeInvalid, "role %q of workflow %q has %q, which this uwf cannot do yet", name, w.Name, field.name)
			}
		}
	}
	return nil
}
